"""Stop requests: SIGINT and SIGTERM as a flag, for a verb that has work to finish before it ends."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class StopRequest:
    """The first signal of this process that requests a stop. signal_number: None before it."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None


@contextlib.contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Set a StopRequest at SIGINT and SIGTERM within the block. A second signal raises KeyboardInterrupt."""
    request = StopRequest()

    def received(number: int, frame: FrameType | None) -> None:
        if request:
            raise KeyboardInterrupt
        request.signal_number = number

    before = {number: signal.signal(number, received) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
