"""Valid bytes with some of them flipped, overwritten, removed, doubled or inserted."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from tests.property.strategies import HOSTILE_I4

_MOST = 4


@st.composite
def mutated(draw: st.DrawFn, originals: st.SearchStrategy[bytes]) -> bytes:
    """Draw one of *originals* after up to four changes."""
    data = bytearray(draw(originals))
    for _ in range(draw(st.integers(0, _MOST))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, min(64, len(data) - at)))
        match draw(st.integers(0, 5)):
            case 0 if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                data[at : at + 4] = struct.pack(">i", draw(HOSTILE_I4))
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length]
            case 4:
                data[at:at] = draw(st.binary(max_size=16))
            case _:
                del data[at:]
    return bytes(data)
