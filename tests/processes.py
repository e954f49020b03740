"""Facts about processes that may end meanwhile."""

from __future__ import annotations

import psutil


def command_line(process: psutil.Process) -> str:
    """Return its command line; "" if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
