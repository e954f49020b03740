"""``python -m services.indexer.healthcheck``: exit status 0 while every shard of the pipeline has a follower."""

from __future__ import annotations

import sys

from tidemark import healthcheck


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status."""
    return healthcheck.main(["pipeline", *(arguments or ())])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
