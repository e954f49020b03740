"""Handling of signals while a service starts, from before its imports until it can stop cleanly.

Imports little, and only from the standard library, because a signal before `exit_on_signal` ends the process as usual.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # Python itself handles SIGINT, so only SIGTERM shows that both are set


def exit_on_signal(service: str) -> None:
    """End the process with status 0 and the event `startup_interrupted` when a signal asks it to stop.

    The process ends at once, because imports and the start of a JVM cannot be interrupted cleanly; every file of a
    store survives that. A service replaces the handlers once it can stop by itself.
    """

    def end(number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        line = f'{{"event": "startup_interrupted", "service": "{service}", "signal": "{name}", "level": "info"}}\n'
        os.write(2, line.encode())
        os._exit(0)

    for number in _SIGNALS:
        signal.signal(number, end)


def restore_signals() -> None:
    """Restore the default handlers, for a process that is not a service."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
