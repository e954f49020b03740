"""Lowers the priority of Spark's JVM below the followers': planning an epoch keeps a core busy and is not urgent.

The followers are forked from Python's daemon, which the JVM started earlier, so they keep their priority.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_NICENESS = 10  # added to this process's niceness


def step_back(pid: int) -> None:
    """Lower the priority of all threads of process *pid*, and of threads that they start, below this process's."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS
    with contextlib.suppress(OSError):  # not Linux, or the process has ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)
