"""Runs one service module and ends it with its parent: `python -m tidemark.local.child_main MODULE …`.

The parent holds the other end of standard input. When the parent dies for any reason, that end closes and the service
gets SIGTERM, as in a regular stop. (PR_SET_PDEATHSIG depends on the parent's thread, not on the process.)
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def main() -> None:
    """Run MODULE with its arguments, its name and its exit status."""
    threading.Thread(target=_end_with_parent, args=(os.dup(0),), daemon=True, name="parent-watch").start()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the service and its child processes get no input
    os.close(nothing)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _end_with_parent(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
