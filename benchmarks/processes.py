"""The processes of a stack: what each is, and how much memory and processor time it takes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from tidemark.local.local_stack import LocalStack

JVM, WORKER = "JVM", "Python worker"


def tree_of(pid: int) -> list[psutil.Process]:
    """A process and everything it has started."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def roles_of(stack: LocalStack) -> dict[str, list[psutil.Process]]:
    """All processes of *stack* by role: a service's name, or of what the pipeline has started JVM and Python worker."""
    roles: dict[str, list[psutil.Process]] = {}
    for name, service in stack.services.items():
        root, *children = tree_of(service.pid)
        roles[name] = [root]
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                roles.setdefault(JVM if child.name() == "java" else WORKER, []).append(child)
    return roles


def resident_bytes(pid: int) -> int:
    """RssAnon + RssShmem, bytes: without pages of mapped files, which the system may take back; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = dict(line.split(":", 1) for line in lines)
    return sum(int(fields.get(name, "0").split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


def cpu_s(process: psutil.Process) -> float:
    """Seconds it and its ended children have used; 0 when it is gone itself."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
