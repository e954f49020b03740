"""Runs one of the bare servers of this package in a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple


class BareServer(NamedTuple):
    """A running server: its loopback address and its process id."""

    address: str
    pid: int


@contextlib.contextmanager
def bare_server(module: str, *arguments: str) -> Iterator[BareServer]:
    """Run `python -m MODULE ARGUMENTS`, which prints its port, until the block ends."""
    with subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield BareServer(f"127.0.0.1:{int(server.stdout.readline())}", server.pid)
        finally:
            server.terminate()
