from __future__ import annotations

from typing import Any, cast

import pytest

from tidemark.client import Message
from tidemark.client.producer.send_options import (
    PlaceOptions,
    SendOptions,
    message_of,
    request_id_of,
    require_place_options,
    require_send_options,
)
from tidemark.errors import PropertiesIllegalError


def test_a_topic_and_a_body_become_a_message_with_the_given_parts() -> None:
    options = SendOptions(tag="red", keys=["k2"], key="k1", properties={"a": "b"}, delay_level=3, flag=7)
    expected = Message("t", b"x", tag="red", keys=("k1", "k2"), properties={"a": "b"}, delay_level=3, flag=7)
    assert message_of("t", b"x", options) == expected


def test_one_key_as_text_is_one_key() -> None:
    """A text is a sequence of characters as well, and must not become several keys."""
    assert message_of("t", b"x", SendOptions(key="k1", keys="k2")).keys == ("k1", "k2")


def test_a_message_object_is_used_unchanged() -> None:
    message = Message("t", b"x", tag="red")
    assert message_of(message, None, SendOptions(queue_id=3, request_id="r")) is message


@pytest.mark.parametrize(
    ("body", "options"), [(b"x", {}), (None, {"tag": "red"}), (None, {"delay_level": 1}), (None, {"key": "k"})]
)
def test_a_message_object_with_message_options_is_refused(body: bytes | None, options: dict[str, Any]) -> None:
    """Either one would be dropped without a word."""
    with pytest.raises(ValueError, match="brings its own"):
        message_of(Message("t", b"x"), body, cast(SendOptions, options))


def test_a_topic_without_a_body_is_refused() -> None:
    with pytest.raises(ValueError, match="a topic and a body"):
        message_of("t", None, SendOptions())


@pytest.mark.parametrize("request_id", [None, "", "r", "x" * 255, "ключ"])
def test_a_request_id_of_at_most_255_characters_is_accepted(request_id: str | None) -> None:
    assert request_id_of(PlaceOptions(request_id=request_id)) == (request_id or None)


@pytest.mark.parametrize("request_id", ["x" * 256, "a\x01b", "a\x02", "\ud800"])
def test_a_request_id_that_no_property_can_hold_is_refused(request_id: str) -> None:
    with pytest.raises(PropertiesIllegalError):
        request_id_of(PlaceOptions(request_id=request_id))


def test_a_request_id_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(TypeError, match="7 of type int"):
        request_id_of(cast(PlaceOptions, {"request_id": 7}))


def test_an_unknown_keyword_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match="queue_id"):
        require_send_options(cast(SendOptions, {"queue_idd": 1}), call="send")


def test_a_batch_accepts_placement_options_and_no_message_options() -> None:
    require_place_options(PlaceOptions(queue_id=1, request_id="r", reconsume_times=2), call="send_batch")
    with pytest.raises(TypeError, match="tag"):
        require_place_options(cast(PlaceOptions, {"tag": "red"}), call="send_batch")
