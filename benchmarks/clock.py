"""The measured part of a benchmark: `with clock():` around it, so that a profiler can record that part alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

Recorder = Callable[[], contextlib.AbstractContextManager[None]]
_RECORDER: ContextVar[Recorder] = ContextVar("recorder", default=contextlib.nullcontext)


def clock() -> contextlib.AbstractContextManager[None]:
    """Held while the figures are made. A recorder may take its time before it lets in."""
    return _RECORDER.get()()


@contextlib.contextmanager
def recording_with(recorder: Recorder) -> Iterator[None]:
    """Whatever is measured in this context is recorded with *recorder*."""
    token = _RECORDER.set(recorder)
    try:
        yield
    finally:
        _RECORDER.reset(token)
