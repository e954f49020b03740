"""Entry point: ``python -m services.writer``. Handles signals before it imports the service."""

from __future__ import annotations

import sys

from tidemark.settings.startup import exit_on_signal


def main() -> int:
    """Run the writer; return its exit status."""
    exit_on_signal("writer")
    from .door import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
