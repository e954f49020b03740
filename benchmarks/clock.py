"""Marks the measured part of a benchmark with `with clock():`, so that a profiler can record only that part."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

Recorder = Callable[[], contextlib.AbstractContextManager[None]]
_RECORDER: ContextVar[Recorder] = ContextVar("recorder", default=contextlib.nullcontext)


def clock() -> contextlib.AbstractContextManager[None]:
    """Return the context of the measured part. A recorder may delay its start."""
    return _RECORDER.get()()


@contextlib.contextmanager
def recording_with(recorder: Recorder) -> Iterator[None]:
    """Record all measured parts in this context with *recorder*."""
    token = _RECORDER.set(recorder)
    try:
        yield
    finally:
        _RECORDER.reset(token)
