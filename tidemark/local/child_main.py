"""Runs one service module and ends it when the parent is gone: `python -m tidemark.local.child_main MODULE …`.

The parent holds the other end of standard input; when it dies, however it dies, that end closes and the service gets
SIGTERM, as if it had been stopped properly. (PR_SET_PDEATHSIG follows the thread that started us, not the process.)
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def main() -> None:
    """Take MODULE's place: its arguments, its name, its exit status."""
    threading.Thread(target=_end_with_parent, args=(os.dup(0),), daemon=True, name="parent-watch").start()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the service and what it starts have no input
    os.close(nothing)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _end_with_parent(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
