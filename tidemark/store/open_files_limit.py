"""How many files this process may have open: a service has one for each queue and log file that it works with."""

from __future__ import annotations

import contextlib
import resource

_KEPT_FOR_FILES = 1_024  # of the process's files: a store's log and queues need some, whoever connects


def allow_many_files() -> None:
    """As many as the process may ask for: the usual soft limit of 1,024 is less than a store's queues."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def connections_within(most: int) -> int:
    """*most* connections, or as many as leave room for the store's files within what the process may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(most, files - min(_KEPT_FOR_FILES, files // 2)))
