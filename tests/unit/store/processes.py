"""Small Python programs of the tests, run in separate processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]


@contextmanager
def running(program: str, *arguments: object, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run *program* until the block ends. It prints a line when it is ready, which is read here."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=env,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()
