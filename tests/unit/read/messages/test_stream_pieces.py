"""Written pieces keep their order, and large buffers are not copied."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.read.messages.stream_pieces import StreamPieces


def test_small_pieces_are_joined_and_large_ones_are_not_copied() -> None:
    """Neighbouring small pieces become one; a large buffer stays the caller's own memory."""
    large = np.arange(1 << 19, dtype=np.uint8)
    pieces = StreamPieces()
    for data in (b"a", b"b", pa.py_buffer(large), b"c", pa.py_buffer(b"d")):
        assert pieces.write(data) == len(data)
    first, second, third = pieces.joined()
    assert (first, third) == (b"ab", b"cd")
    assert np.shares_memory(np.frombuffer(second, np.uint8), large)


def test_no_pieces_are_joined_to_none() -> None:
    assert StreamPieces().joined() == []
