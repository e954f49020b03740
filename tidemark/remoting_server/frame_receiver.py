"""FrameReceiver: where a connection's bytes are received, and the frames in them."""

from __future__ import annotations

from tidemark.remoting.frame import Frame
from tidemark.remoting.frame_buffer import FrameBuffer
from tidemark.remoting.framing import HEAD, decode

_LARGE_BYTES = 32 << 10
_MAX_RATIO = 4  # of a frame's size to the bytes that have arrived when memory for it is taken


class FrameReceiver:
    """Receives the bytes of one connection.

    Small frames are received in *shared*, which all connections of an event loop share, and copied from it. The rest of
    a large frame is received in memory of its own, so that no byte of it is copied again.

    limit  the largest length of a frame in bytes, without the four bytes of the length itself
    """

    def __init__(self, shared: memoryview, limit: int) -> None:
        self._shared = shared
        self._limit = limit
        self._buffer = FrameBuffer(limit)
        self._large: memoryview | None = None  # a frame in its own memory
        self._filled = 0  # bytes of it

    def __len__(self) -> int:
        """Return the bytes of memory that an incomplete frame takes."""
        return len(self._buffer) if self._large is None else len(self._large)

    def room(self) -> memoryview:
        """Return the memory for the next bytes. It holds them only until the next call of `received`."""
        return self._shared if self._large is None else self._large[self._filled :]

    def received(self, size: int) -> list[Frame]:
        """Return the frames that are whole with the *size* bytes that were written to `room`.

        Raises:
            FrameIllegalError: the bytes are no frame. Frames before it are lost, because the connection must be closed.
        """
        if self._large is None:
            frames = self._buffer.take(bytes(self._shared[:size]))
            self._look_for_large()
            return frames
        self._filled += size
        if self._filled < len(self._large):
            return []
        frame, self._large = self._large, None
        return [decode(frame.toreadonly())]

    def _look_for_large(self) -> None:
        """Take memory for an incomplete large frame once a part of it that justifies this has arrived."""
        rest = self._buffer.rest
        if len(rest) < HEAD.size:
            return
        size = 4 + HEAD.unpack_from(rest)[0]
        if _LARGE_BYTES <= size <= _MAX_RATIO * len(rest):
            self._filled = len(rest)
            self._large = memoryview(bytearray(size))
            self._large[: self._filled] = rest
            self._buffer = FrameBuffer(self._limit)
