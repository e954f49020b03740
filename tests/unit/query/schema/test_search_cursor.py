"""Cursors are opaque, and bound to their search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.indexer.query.schema.search_cursor import decode_cursor, encode_cursor
from tidemark.errors import ArgumentIllegalError


@given(st.text(), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, (1 << 32) - 1))
def test_a_search_cursor_survives_encode_and_decode(search: str, physical_offset: int, element: int) -> None:
    cursor = encode_cursor(search, physical_offset, element)
    assert decode_cursor(search, cursor) == (physical_offset, element)
    with pytest.raises(ArgumentIllegalError):
        decode_cursor(search + "x", cursor)


@given(st.text())
def test_an_invalid_search_cursor_is_refused(text: str) -> None:
    """Any text raises one of Tidemark's errors."""
    with pytest.raises(ArgumentIllegalError):
        decode_cursor("search", text)
