"""AnswerReader: the reader of the answer to a batch."""

from __future__ import annotations

import enum


class AnswerReader(enum.Enum):
    """The reader of a remoting stream. gRPC has threads of its own, so its stream makes no difference."""

    STREAM = enum.auto()
    """The stream's own thread."""
    CALLER = enum.auto()
    """The thread that sends, because it waits for the result at once."""
    LOOP = enum.auto()
    """The event loop of the task that sends."""
