"""How many files this process may have open: a service has one for each queue and log file that it works with."""

from __future__ import annotations

import contextlib
import resource


def allow_many_files() -> None:
    """As many as the process may ask for: the usual soft limit of 1,024 is less than a store's queues."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
