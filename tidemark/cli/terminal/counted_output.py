"""CountedOutput: standard output for a verb that must know which messages were written."""

from __future__ import annotations

import os
import select
import sys

from tidemark.cli.terminal.stop_request import StopRequest

_PIECE_BYTES = select.PIPE_BUF  # a pipe that is ready takes as much without blocking
_GLANCE_S = 0.2  # longest time until a stop request is seen


class CountedOutput:
    """Standard output without a buffer. A write that waits for its reader ends at a stop request."""

    def __init__(self, stop: StopRequest) -> None:
        sys.stdout.flush()
        self._descriptor = sys.stdout.fileno()
        self._stop = stop

    def write(self, data: bytes) -> bool:
        """Write *data* and return True; return False if a stop request came before its last byte was written.

        Raises BrokenPipeError if the reader has closed the pipe.
        """
        left = memoryview(data)
        while left:
            if self._stop:
                return False
            _, is_ready, _ = select.select([], [self._descriptor], [], _GLANCE_S)
            if is_ready:
                left = left[os.write(self._descriptor, left[:_PIECE_BYTES]) :]
        return True

    def require_reader(self) -> None:
        """Raise BrokenPipeError if the reader has closed the pipe, without writing."""
        watch = select.poll()
        watch.register(self._descriptor, 0)
        if any(event & select.POLLERR for _, event in watch.poll(0)):
            raise BrokenPipeError
