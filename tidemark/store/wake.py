"""Waits for a change of a word in a mapped file, and wake-ups of the waiting threads: Linux futexes across processes.

A follower that polls costs either latency or processor time; one that sleeps on the word costs neither. Without a futex
(on another system, or if the word is not mapped), a wait is a short sleep. Waits are always bounded, so a lost wake-up
costs only latency.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import time
from collections.abc import Callable

_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
_SYSCALL_NUMBERS = {"x86_64": 202, "aarch64": 98}
_POLL_S = 0.002
_EVERYBODY = 0x7FFFFFFF


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _load() -> tuple[Callable[..., int], int] | None:
    number = _SYSCALL_NUMBERS.get(platform.machine())
    if sys.platform != "linux" or number is None or os.environ.get("TIDEMARK_NO_FUTEX"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    call = library.syscall
    call.restype = ctypes.c_long
    call.argtypes = (  # number, address, operation, value, timeout, and two that are not used
        ctypes.c_long,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
    )
    return call, number


_FUTEX = _load()


def wake(address: int | None) -> None:
    """Wake all threads that wait on the 4-byte word at *address*, in any process."""
    if _FUTEX is not None and address is not None:
        call, number = _FUTEX
        call(number, address, _FUTEX_WAKE, _EVERYBODY, None, None, 0)


def wait(address: int | None, seen: int, timeout_s: float) -> None:
    """Sleep until `wake`, for at most *timeout_s*, if the native 4-byte word at *address* is still *seen*."""
    timeout_s = max(timeout_s, 0)
    if _FUTEX is None or address is None:
        time.sleep(min(timeout_s, _POLL_S))
        return
    call, number = _FUTEX
    limit = _Timespec(int(timeout_s), int((timeout_s % 1) * 1e9))
    result = call(number, address, _FUTEX_WAIT, seen & 0xFFFFFFFF, ctypes.byref(limit), None, 0)
    if result == -1 and ctypes.get_errno() not in (0, 4, 11, 110):  # success, EINTR, EAGAIN, ETIMEDOUT
        time.sleep(min(timeout_s, _POLL_S))


def word_at(address: int) -> int:
    """Return the native 4-byte word at *address*."""
    return ctypes.c_uint32.from_address(address).value
