"""StreamPieces: collects the output of a stream writer in pieces instead of one growing buffer."""

from __future__ import annotations

import pyarrow as pa

_LARGE_BYTES = 256 << 10  # kept as a separate piece; copying a smaller one is cheaper than sending it separately


class StreamPieces:
    """Writable file for `pyarrow.PythonFile`. Buffers are referenced, not copied."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes | memoryview] = []

    def write(self, data: bytes | pa.Buffer) -> int:
        """Add *data*."""
        self._pieces.append(data if isinstance(data, bytes) else memoryview(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: no data is buffered."""

    def close(self) -> None:
        """Do nothing: the pieces are kept."""

    def joined(self) -> list[bytes | memoryview]:
        """Return all data in order: large pieces unchanged, adjacent small ones joined."""
        joined: list[bytes | memoryview] = []
        small: list[bytes | memoryview] = []
        for piece in self._pieces:
            if len(piece) < _LARGE_BYTES:
                small.append(piece)
                continue
            if small:
                joined.append(b"".join(small))
                small = []
            joined.append(piece)
        if small:
            joined.append(b"".join(small))
        return joined
