"""`make examples`: runs all examples, or the named ones, against services that it starts and stops."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.run import EXAMPLES, run_example
from tidemark.local.local_stack import LocalStack


def main(names: list[str]) -> int:
    """Run the examples and return the number that failed, as exit status."""
    if unknown := set(names) - {example.name for example in EXAMPLES}:
        sys.exit(f"no such example: {', '.join(sorted(unknown))}")
    failed = 0
    with TemporaryDirectory() as folder, LocalStack(Path(folder) / "data") as stack:
        for example in EXAMPLES:
            if names and example.name not in names:
                continue
            if example.missing:
                print(f"{example.name}: skipped, because this machine lacks {' and '.join(example.missing)}")
                continue
            done = run_example(example, stack, Path(folder))
            print(f"{example.name}: {'ok' if done.returncode == 0 else f'failed with status {done.returncode}'}")
            print(textwrap.indent(done.stdout, "    "))
            failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
