"""The processes of a stack: their roles, and their memory and processor time."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from tidemark.local.local_stack import LocalStack

DRIVER, JVM, WORKER = "driver", "JVM", "Python worker"


def tree_of(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def roles_of(stack: LocalStack) -> dict[str, list[psutil.Process]]:
    """Return the processes of *stack* by role: a service's name, or that of the pipeline's Spark process."""
    roles: dict[str, list[psutil.Process]] = {}
    for name, service in stack.services.items():
        root, *children = tree_of(service.pid)
        roles[name] = [root]
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                roles.setdefault(_role_of(child), []).append(child)
    return roles


def _role_of(process: psutil.Process) -> str:
    """Return the role of a process that the pipeline started."""
    if process.name() == "java":
        return JVM
    return WORKER if any(word.endswith("spark.daemon") for word in process.cmdline()) else DRIVER


def resident_bytes(pid: int) -> int:
    """Return RssAnon + RssShmem in bytes, without reclaimable pages of mapped files; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = dict(line.split(":", 1) for line in lines)
    return sum(int(fields.get(name, "0").split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


def cpu_s(process: psutil.Process) -> float:
    """Return the seconds that *process* and its ended children have used; 0 if it has ended itself."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
