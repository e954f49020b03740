"""`python -m services.indexer pipeline [--once] | query | attach`: imports only the part it starts."""

from __future__ import annotations

import sys

from tidemark.settings.startup import exit_on_signal

_USAGE = "usage: python -m services.indexer (pipeline [--once] | query | attach) [--setting value …] [--help]"


def main(arguments: list[str]) -> int:
    """Start one part; return its exit status. Handles signals before it imports that part."""
    if arguments and arguments[0] in ("pipeline", "query", "attach"):
        exit_on_signal(arguments[0])
    match arguments:
        case ["pipeline", *rest]:
            from .pipeline.__main__ import main as pipeline

            return pipeline(rest)
        case ["query", *rest]:
            from .query.__main__ import main as query

            return query(rest)
        case ["attach", *rest]:
            from .attach.__main__ import main as attach

            return attach(rest)
        case _:
            sys.stderr.write(_USAGE + "\n")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
