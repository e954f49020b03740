"""Properties: encoder and parser are inverse, and the compiled scan finds the parser's results."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import plain_check
from tests.needs_numba import needs_numba
from tests.property.strategies import NUMBERS, START_TIMES, property_bytes
from tidemark.format.kernels import properties as kernel
from tidemark.format.kernels.integers import parse_decimal
from tidemark.format.properties import decode_properties, encode_properties, timer_name

CLEAN = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=6)
SINGLE_NAMES = {
    "TAGS": kernel.TAGS,
    "KEYS": kernel.KEYS,
    "UNIQ_KEY": kernel.UNIQ_KEY,
    "INNER_NUM": kernel.INNER_NUM,
    "INNER_BASE": kernel.INNER_BASE,
    "DELAY": kernel.DELAY,
    "INNER_MULTI_DISPATCH": kernel.MULTI_DISPATCH,
    "TRAN_MSG": kernel.TRANSACTION,
    "WAIT": kernel.WAIT,
}


@given(entries=st.dictionaries(CLEAN, CLEAN))
def test_decode_reverses_encode(entries: dict[str, str]) -> None:
    """Any names and values without separators are decoded in their order."""
    assert list(decode_properties(encode_properties(entries)).items()) == list(entries.items())


@given(data=st.one_of(property_bytes(), st.binary(max_size=60)))
def test_decode_equals_the_parser_over_bytes(data: bytes) -> None:
    """The spec's parser over text and the compiled scan over bytes agree on any bytes."""
    plain: dict[str, str] = {}
    for name, (at, length) in plain_check.find_properties(data, 0, len(data)).items():
        plain[name.decode("utf-8", "replace")] = data[at : at + length].decode("utf-8", "replace")
    assert decode_properties(data).keys() == plain.keys()
    well_formed = data.decode("utf-8", "replace").encode() == data
    assert not well_formed or decode_properties(data) == plain


@needs_numba
@given(
    data=st.one_of(
        property_bytes(),
        st.binary(max_size=60),
        st.lists(
            st.sampled_from([*SINGLE_NAMES, *START_TIMES, "TIMER_", "\x01", "\x02", "x", "é", "TIMER"]), max_size=12
        ).map(lambda pieces: "".join(pieces).encode()),
    ),
    before=st.binary(max_size=5),
    behind=st.binary(max_size=5),
)
def test_the_property_scan_equals_the_parser(data: bytes, before: bytes, behind: bytes) -> None:
    """Position and length of each value are the parser's; 0 and 0 if there is none."""
    found = np.full((kernel.N_NAMES, 2), -77, np.int64)
    buffer = before + data + behind
    kernel.scan_properties(np.frombuffer(buffer, np.uint8), len(before), len(before) + len(data), found)
    plain = plain_check.find_properties(buffer, len(before), len(data))
    for name, row in SINGLE_NAMES.items():
        assert tuple(found[row]) == plain.get(name.encode(), (0, 0)), name
    timers = [place for name, place in plain.items() if timer_name({name.decode("utf-8", "replace"): "x"})]
    assert tuple(found[kernel.TIMER]) in (timers or [(0, 0)])


@needs_numba
@given(
    text=st.one_of(NUMBERS.map(str.encode), st.binary(max_size=12), st.integers().map(lambda n: str(n).encode())),
    bits=st.sampled_from([16, 32, 64]),
)
def test_parse_decimal_equals_java(text: bytes, bits: int) -> None:
    """A number is accepted, with its value, exactly when Short, Integer or Long would parse it."""
    greatest = (1 << (bits - 1)) - 1
    buffer = b"9" + text + b"9"
    is_number, value = parse_decimal(np.frombuffer(buffer, np.uint8), 1, len(text), greatest)
    expected = plain_check.parse_number(text, greatest)
    assert (int(value) if is_number else None) == expected
