"""JSON bodies."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from tidemark.client.json_body import json_body


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
