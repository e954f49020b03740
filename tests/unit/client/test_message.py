"""A message's element: what its parts become, and what cannot be written."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.client import Message
from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError
from tidemark.format.properties import decode_properties


def properties_of(**parts: Any) -> dict[str, str]:
    return decode_properties(Message("t", b"x", **parts).to_element().properties)


def test_parts_become_properties() -> None:
    """By RocketMQ's names; the flag has a field of its own."""
    message = Message("t", "hällo", tag="A", keys=["k1", "k2"], properties={"colour": "red"}, delay_level=3, flag=-7)
    element = message.to_element()
    assert (element.body, element.flag) == ("hällo".encode(), -7)
    assert decode_properties(element.properties) == {"TAGS": "A", "KEYS": "k1 k2", "DELAY": "3", "colour": "red"}


def test_a_plain_message_has_no_properties() -> None:
    """Not even empty ones."""
    assert Message("t", b"x").to_element() == (b"x", b"", 0)


@pytest.mark.parametrize(("level", "written"), [(1, "1"), (18, "18"), (19, "18"), (1000, "18")])
def test_levels_above_the_last_count_as_the_last(level: int, written: str) -> None:
    """As at the peer's."""
    assert properties_of(delay_level=level) == {"DELAY": written}


def test_a_text_is_one_key() -> None:
    """And not one key a letter."""
    assert properties_of(keys="k1") == {"KEYS": "k1"}
    assert Message("t", b"x", keys="k1").first_key == "k1"


def test_bytes_like_bodies_are_taken() -> None:
    """A copy of what they hold now."""
    body = bytearray(b"abc")
    element = Message("t", body).to_element()  # type: ignore[arg-type]
    body[0] = 0
    assert element.body == b"abc"


def test_a_number_is_no_body() -> None:
    """bytes(5) would be five zeros."""
    with pytest.raises(TypeError, match="int"):
        Message("t", 5).to_element()  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", [{"delay_level": -1}, {"flag": 1 << 31}])
def test_numbers_out_of_their_range_are_refused(parts: dict[str, int]) -> None:
    """They would become others on the wire."""
    with pytest.raises(ArgumentIllegalError):
        properties_of(**parts)


@pytest.mark.parametrize(
    "parts",
    [
        {"delay_level": 1, "properties": {"DELAY": "2"}},
        {"tag": "A", "properties": {"TAGS": "A"}},
        {"properties": {"a": "\ud800"}},
        {"tag": "\udfff"},
    ],
)
def test_what_contradicts_itself_or_is_no_text_is_refused(parts: dict[str, Any]) -> None:
    """Typed, not as an encoder's error."""
    with pytest.raises(PropertiesIllegalError):
        properties_of(**parts)
