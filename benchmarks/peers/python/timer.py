"""Timer: a file descriptor of Linux that becomes readable when messages are due.

An event loop rounds its own timers up to a millisecond, which would count as latency of the asyncio clients. All
clients use this timer instead.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_COUNT = struct.Struct("@Q")


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Time), ("first", _Time))


class Timer:
    """A timer of *rate* ticks a second. begin_ns: time.perf_counter_ns() of its first tick."""

    def __init__(self, rate: int, lead_s: float = 0.05) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
        self.interval_ns = 1_000_000_000 // rate
        self.begin_ns = time.perf_counter_ns() + int(lead_s * 1e9)  # perf_counter reads CLOCK_MONOTONIC
        setting = _Setting(_time(self.interval_ns), _time(self.begin_ns))
        if self.fd < 0 or libc.timerfd_settime(self.fd, _ABSOLUTE, ctypes.byref(setting), None):
            raise OSError(ctypes.get_errno(), "timerfd")

    def wait(self) -> int:
        """Block until at least one tick is due, and return the number of ticks since the last call."""
        ticks: int = _COUNT.unpack(os.read(self.fd, _COUNT.size))[0]
        return ticks

    def due_ns(self, number: int) -> int:
        """Return the time of a tick; the first has number 0."""
        return self.begin_ns + number * self.interval_ns

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)


def _time(nanoseconds: int) -> _Time:
    return _Time(*divmod(nanoseconds, 1_000_000_000))
