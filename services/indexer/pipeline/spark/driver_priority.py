"""Spark's own work comes behind the followers': planning an epoch takes a core for a while, and nobody waits for it.

The followers are processes of Python's daemon, which Spark's JVM has started: they keep the priority it had then.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_NICENESS = 10  # more than ours


def step_back(pid: int) -> None:
    """Lower the priority of the threads of process *pid*, and of those that they will start, below this one's."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS
    with contextlib.suppress(OSError):  # not Linux, or gone
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)
