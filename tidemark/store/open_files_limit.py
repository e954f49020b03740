"""The process's limit of open files. A service has one open file for each queue and log file in use."""

from __future__ import annotations

import contextlib
import resource

_KEPT_FOR_FILES = 1_024  # of the process's files: reserved for a store's log and queues


def allow_many_files() -> None:
    """Raise the soft limit to the hard limit: the usual 1,024 files are fewer than a store's queues."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def connections_within(most: int) -> int:
    """Return *most*, or fewer connections if the process's limit of files requires it: the store needs files, too."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(most, files - min(_KEPT_FOR_FILES, files // 2)))
