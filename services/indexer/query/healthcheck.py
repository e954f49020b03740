"""``python -m services.indexer.query.healthcheck``: exit status 0 if this host's query service answers."""

from __future__ import annotations

import sys

from tidemark import healthcheck


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status."""
    return healthcheck.main(["query", *(arguments or ())])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
