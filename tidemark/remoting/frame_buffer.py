"""FrameBuffer: finds whole frames in the pieces in which a connection delivers them."""

from __future__ import annotations

from tidemark.remoting.frame import Frame
from tidemark.remoting.framing import MAX_FRAME_SIZE_BYTES, decode, split


class FrameBuffer:
    """The received bytes of one connection. rest: those that are not a whole frame yet; limit: as for `split`."""

    def __init__(self, limit: int = MAX_FRAME_SIZE_BYTES) -> None:
        self._limit = limit
        self.rest = bytearray()

    def __len__(self) -> int:
        return len(self.rest)

    def take(self, data: bytes) -> list[Frame]:
        """Add *data*, and return the frames that are whole now. Bodies are parts of received bytes, without a copy.

        Raises:
            FrameIllegalError: the bytes are no frame. Frames before it are lost, because the connection must be closed.
        """
        if self.rest:
            self.rest += data
            _, end = split(self.rest, limit=self._limit)
            if not end:
                return []
            data = bytes(memoryview(self.rest)[:end])
            del self.rest[:end]
        places, end = split(data, limit=self._limit)
        view = memoryview(data)
        if end < len(data):
            self.rest += view[end:]
        return [decode(view[start:stop]) for start, stop in places]
