"""The compiled hash over UTF-8 bytes equals Java's hash of the decoded text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import plain_check
from tests.needs_numba import needs_numba
from tidemark.format.kernels.crc import masked_crc32
from tidemark.format.kernels.text import text_hash
from tidemark.format.primitives import java_hash
from tidemark.format.primitives import masked_crc32 as plain_crc

pytestmark = needs_numba

UTF8_EDGES = st.lists(
    st.sampled_from([0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED])
    | st.sampled_from([0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF]),
    max_size=12,
).map(bytes)
TEXTS = st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace"))
ANY_BYTES = st.one_of(UTF8_EDGES, st.binary(max_size=40), TEXTS)


@given(data=ANY_BYTES, before=st.binary(max_size=3), behind=UTF8_EDGES)
def test_text_hash_equals_java_hash_of_the_decoded_text(data: bytes, before: bytes, behind: bytes) -> None:
    """This includes malformed parts, and any bytes around the text."""
    buffer = np.frombuffer(before + data + behind, np.uint8)
    value = int(np.uint32(text_hash(buffer, len(before), len(data), 0)).astype(np.int32))
    assert value == java_hash(data.decode("utf-8", "replace")) == plain_check.text_hash(data)


@pytest.mark.parametrize("odd", [b"", "é".encode(), "€".encode(), "😀".encode(), b"\xff", b"\xe2\x82"])
def test_text_hash_is_right_around_eight_character_blocks(odd: bytes) -> None:
    """Texts of about that length have a non-ASCII character at each place."""
    letters = bytes(range(0x5A, 0x7F))
    for length in range(20):
        for at in range(length + 1):
            data = letters[:at] + odd + letters[at:length]
            value = int(np.uint32(text_hash(np.frombuffer(data, np.uint8), 0, len(data), 0)).astype(np.int32))
            assert value == java_hash(data.decode("utf-8", "replace")), data


@given(head=st.text(max_size=8), tail=st.text(max_size=8))
def test_text_hash_continues_from_a_seed(head: str, tail: str) -> None:
    """Hashing a text in two pieces gives the hash of the whole."""
    first, second = head.encode("utf-8", "replace"), tail.encode("utf-8", "replace")
    seed = text_hash(np.frombuffer(first, np.uint8), 0, len(first), 0)
    value = text_hash(np.frombuffer(second, np.uint8), 0, len(second), np.uint32(seed))
    whole = plain_check.java_hash(first.decode() + second.decode())
    assert int(np.uint32(value).astype(np.int32)) == whole


@given(data=st.binary(max_size=5000), at=st.integers(0, 64))
def test_masked_crc_equals_zlib(data: bytes, at: int) -> None:
    """The CRC-32 lacks its highest bit, and may start at any position of a buffer."""
    at = min(at, len(data))
    expected = plain_check.masked_crc(data[at:])
    assert int(masked_crc32(np.frombuffer(data, np.uint8), at, len(data) - at)) == expected == plain_crc(data[at:])
