"""The wire element of a message: its fields and properties, and messages that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.client import Message
from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError
from tidemark.format.properties import decode_properties


def properties_of(**parts: Any) -> dict[str, str]:
    return decode_properties(Message("t", b"x", **parts).to_element().properties)


def test_parts_become_properties() -> None:
    """The names are RocketMQ's; the flag has its own field."""
    message = Message("t", "hällo", tag="A", keys=["k1", "k2"], properties={"colour": "red"}, delay_level=3, flag=-7)
    element = message.to_element()
    assert (element.body, element.flag) == ("hällo".encode(), -7)
    assert decode_properties(element.properties) == {"TAGS": "A", "KEYS": "k1 k2", "DELAY": "3", "colour": "red"}


def test_a_plain_message_has_no_properties() -> None:
    """There are no empty ones either."""
    assert Message("t", b"x").to_element() == (b"x", b"", 0)


@pytest.mark.parametrize(("level", "written"), [(1, "1"), (18, "18"), (19, "18"), (1000, "18")])
def test_delay_levels_above_the_last_count_as_the_last(level: int, written: str) -> None:
    """RocketMQ does the same."""
    assert properties_of(delay_level=level) == {"DELAY": written}


def test_a_text_is_one_key() -> None:
    """It is not one key per letter."""
    assert properties_of(keys="k1") == {"KEYS": "k1"}
    assert Message("t", b"x", keys="k1").first_key == "k1"


def test_bytes_like_bodies_are_accepted() -> None:
    """The message copies their present contents."""
    body = bytearray(b"abc")
    element = Message("t", body).to_element()  # type: ignore[arg-type]
    body[0] = 0
    assert element.body == b"abc"


def test_a_number_is_refused_as_a_body() -> None:
    """bytes(5) would be five zeros."""
    with pytest.raises(TypeError, match="int"):
        Message("t", 5).to_element()  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", [{"delay_level": -1}, {"flag": 1 << 31}])
def test_numbers_out_of_their_range_are_refused(parts: dict[str, int]) -> None:
    """They would change on the wire."""
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
def test_contradictory_or_non_text_properties_are_refused(parts: dict[str, Any]) -> None:
    """The error is typed, not an encoder's."""
    with pytest.raises(PropertiesIllegalError):
        properties_of(**parts)


@pytest.mark.parametrize(
    "tag", ["*", "A||B", "||", " A", "A ", "\u00a0A", "A\u3000", "tab\there", "new\nline", "\x00", "\x7f", "\x85"]
)
def test_a_tag_that_no_filter_can_name_is_refused(tag: str) -> None:
    """It is refused as the tag and as the property TAGS; the error shows it."""
    for parts in ({"tag": tag}, {"properties": {"TAGS": tag}}):
        with pytest.raises(PropertiesIllegalError, match="tag") as raised:
            properties_of(**parts)
        assert repr(tag) in raised.value.message


@pytest.mark.parametrize("tag", ["A", "a b", "A|B", "**", "*A", "%41", "标签", "e\u0301", "'\""])
def test_a_tag_that_a_filter_can_name_is_kept(tag: str) -> None:
    assert properties_of(tag=tag) == {"TAGS": tag}


@pytest.mark.parametrize("key", ["", "a b", "tab\tkey", "new\nline", "\x7f"])
def test_a_key_that_no_lookup_can_find_is_refused(key: str) -> None:
    with pytest.raises(PropertiesIllegalError, match="key"):
        properties_of(keys=["k", key])


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"tag": 1}, "a tag must be a str, not 1 of type int"),
        ({"tag": 0}, "not 0 of type int"),
        ({"tag": b"A"}, "not b'A' of type bytes"),
        ({"keys": [1]}, "a key must be a str, not 1 of type int"),
        ({"keys": 1}, "keys must be a str"),
        ({"keys": 0}, "keys must be a str"),
        ({"keys": b"k"}, "keys must be a str"),
        ({"keys": ["k", None]}, "not None of type NoneType"),
        ({"properties": {"n": 1}}, "the value of property 'n' must be a str, not 1 of type int"),
        ({"properties": {"n": b"1"}}, "of type bytes"),
        ({"properties": {"n": None}}, "of type NoneType"),
        ({"properties": {1: "n"}}, "a property's name must be a str"),
        ({"properties": [("n", "1")]}, "properties must be a mapping"),
        ({"flag": "1"}, "flag must be an int"),
        ({"flag": True}, "flag must be an int"),
        ({"delay_level": "1"}, "delay_level must be an int"),
    ],
)
def test_a_part_of_a_wrong_type_is_refused_with_the_accepted_one(parts: dict[str, Any], named: str) -> None:
    with pytest.raises(TypeError, match=named):
        properties_of(**parts)


def test_a_retried_message_keeps_its_tag_and_keys() -> None:
    """An earlier version stored such messages, and a failed one must not be lost."""
    for topic in ("%RETRY%g", "%DLQ%g"):
        element = Message(topic, b"x", tag="A||B", keys=["tab\tkey"]).to_element()
        assert decode_properties(element.properties) == {"TAGS": "A||B", "KEYS": "tab\tkey"}
