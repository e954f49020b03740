"""``python -m services.writer.healthcheck``: exit status 0 when this host's writer serves."""

from __future__ import annotations

import sys

from tidemark import healthcheck


def main() -> int:
    """Return the exit status."""
    return healthcheck.main(["writer"])


if __name__ == "__main__":
    sys.exit(main())
