"""Properties and keys."""

from __future__ import annotations

import pytest

from tidemark.format.properties import decode_properties, encode_properties, split_keys


def test_properties_are_encoded_with_separators_1_and_2() -> None:
    """They are in the mapping's order, as UTF-8."""
    assert encode_properties({"TAGS": "TagA", "ключ": "é"}) == "TAGS\x01TagA\x02ключ\x01é\x02".encode()
    assert encode_properties({}) == b""


@pytest.mark.parametrize(
    ("data", "entries"),
    [
        (b"", {}),
        (b"A\x01b", {"A": "b"}),
        (b"\x01b\x02", {}),
        (b"A\x01\x02", {}),
        (b"A\x01x\x02A\x01y\x02", {"A": "y"}),
        (b"A\x02\x01b\x02C\x01d", {"C": "d"}),
        (b"A\x01\x01\x02", {"A": "\x01"}),
        (b"\x02\x02\x02A\x01b\x02", {"A": "b"}),
        (b"A\x01\xff\x02", {"A": "�"}),
        (b"A\x01\xe4\x01\x02", {"A": "�\x01"}),
    ],
)
def test_the_properties_parser_is_lenient(data: bytes, entries: dict[str, str]) -> None:
    """The cases follow docs/format.md §2; bytes that are not UTF-8 are replaced."""
    assert decode_properties(data) == entries


def test_keys_are_split_at_spaces() -> None:
    """Empty pieces are skipped (docs/format.md §2)."""
    assert split_keys(" a  b c ") == ["a", "b", "c"]
    assert split_keys("") == split_keys("  ") == []
