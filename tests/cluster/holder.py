"""The builder of a shard: the process that has its lock, and its executor."""

from __future__ import annotations

from pathlib import Path

import psutil

from tidemark.store.paths import StorePaths


def holder_of(store: Path, shard: int) -> psutil.Process | None:
    """Return the process that holds the shard's lock, or None."""
    inode = (StorePaths(store).indexer / f"shard-{shard}.lock").stat().st_ino
    locks = [
        line.split() for line in Path("/proc/locks").read_text().splitlines()
    ]  # lines of waiting processes begin with an arrow
    holders = {int(words[4]) for words in locks if words[1] == "FLOCK" and words[5].endswith(f":{inode}")}
    try:
        return psutil.Process(holders.pop()) if holders else None
    except psutil.NoSuchProcess:
        return None


def pid_of(executor: str) -> int:
    """Return the pid of the process that forks an executor's tasks, from an event's host/pid."""
    return int(executor.rpartition("/")[2])


def executor_of(task: psutil.Process) -> psutil.Process:
    """Return the JVM of the process that forked *task*."""
    daemon = task.parent()
    assert daemon is not None
    executor = daemon.parent()
    assert executor is not None
    return executor
