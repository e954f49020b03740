"""What a stream writer writes, kept in pieces instead of in one growing buffer."""

from __future__ import annotations

import pyarrow as pa

_LARGE_BYTES = 64 << 10  # a piece of its own; what is smaller is cheaper to copy than to send by itself


class StreamPieces:
    """A file to write to, as `pyarrow.PythonFile` wants one. Buffers are referred to, not copied."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes | memoryview] = []

    def write(self, data: bytes | pa.Buffer) -> int:
        """Take *data*."""
        self._pieces.append(data if isinstance(data, bytes) else memoryview(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """What was written stays."""

    def joined(self) -> list[bytes | memoryview]:
        """Everything in order: large pieces as they are, small neighbours as one."""
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
