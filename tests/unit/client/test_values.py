"""Values as bodies, and back."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from tidemark.client import Message
from tidemark.client.producer.send_options import message_of
from tidemark.client.values import deserializer_of, json_body


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int


class Order(BaseModel):
    book: str
    at: datetime


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"grün": [1, 2.5, None, True]}, '{"grün":[1,2.5,null,true]}'),
        (Point(3), '{"x":3}'),
        ([Colour.RED], '["red"]'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (
            {"order": Order(book="b", at=datetime(2026, 1, 2, tzinfo=UTC))},
            '{"order":{"book":"b","at":"2026-01-02T00:00:00Z"}}',
        ),
    ],
)
def test_values_have_their_usual_form(value: object, expected: str) -> None:
    assert json_body(value) == expected.encode()


@pytest.mark.parametrize("value", [object(), {1, 2}, {"a": b"bytes"}, {(1, 2): 3}])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        json_body(value)


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({"model": Order(book="a", at=datetime(2026, 1, 2, tzinfo=UTC))}, '{"book":"a","at":"2026-01-02T00:00:00Z"}'),
        ({"value": Point(1)}, b'{"x":1}'),
        ({"value": None}, b"null"),
        ({"value": 0, "tag": "A"}, b"0"),
    ],
)
def test_a_model_or_a_value_takes_the_place_of_a_body(options: Any, body: bytes | str) -> None:
    assert message_of("t", None, options) == Message("t", body, tag=options.get("tag"))


def test_the_serializer_makes_a_values_body() -> None:
    """A model has its own JSON."""
    assert message_of("t", None, {"value": [1, 2]}, repr).body == "[1, 2]"
    assert message_of("t", None, {"model": Order(book="a", at=datetime.now(UTC))}, repr).body[:1] == "{"


@pytest.mark.parametrize(
    ("body", "options"), [(b"x", {"value": 1}), (b"x", {"model": 1}), (None, {"value": 1, "model": 1})]
)
def test_several_bodies_are_refused(body: bytes | None, options: Any) -> None:
    with pytest.raises(ValueError, match="one of body, model and value"):
        message_of("t", body, options)


@pytest.mark.parametrize("options", [{"value": 0}, {"value": None}, {"model": None}])
def test_a_message_takes_no_other_body(options: Any) -> None:
    """An empty value is one, too."""
    with pytest.raises(ValueError, match="brings its own body"):
        message_of(Message("t", b"x"), None, options)


@pytest.mark.parametrize("model", [{"book": "a"}, Point(1), Order, None])
def test_a_model_must_be_a_pydantic_models_instance(model: object) -> None:
    with pytest.raises(TypeError, match="instance of a pydantic model"):
        message_of("t", None, {"model": model})


def test_a_consumers_model_must_be_a_class_of_models() -> None:
    with pytest.raises(TypeError, match="class of pydantic models"):
        deserializer_of(Point, None)
    with pytest.raises(ValueError, match="both given"):
        deserializer_of(Order, bytes.decode)
