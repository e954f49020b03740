"""``python -m services.writer.healthcheck``: exits with 0 if the writer on this host serves."""

from __future__ import annotations

import sys

from tidemark import healthcheck


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status."""
    return healthcheck.main(["writer", *(arguments or ())])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
