"""Answers to offset requests and lookups."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.field_table import FieldTable
from tidemark.remoting.offset_answers import (
    OFFSET_ANSWER,
    QUERY_MESSAGE_ANSWER,
    STORE_TIME_ANSWER,
    OffsetAnswer,
    QueryMessageAnswer,
    StoreTimeAnswer,
)

CASES: list[tuple[FieldTable[Any], dict[str, str], tuple[Any, ...]]] = [
    (OFFSET_ANSWER, {"offset": "105"}, OffsetAnswer(105)),
    (STORE_TIME_ANSWER, {"timestamp": "-1"}, StoreTimeAnswer(-1)),
    (
        QUERY_MESSAGE_ANSWER,
        {"indexLastUpdateTimestamp": "1795639314861", "indexLastUpdatePhyoffset": "4007078"},
        QueryMessageAnswer(1795639314861, 4007078),
    ),
]


@pytest.mark.parametrize(("table", "fields", "value"), CASES)
def test_both_directions_have_the_fields_of_the_answer(
    table: FieldTable[Any], fields: dict[str, str], value: tuple[Any, ...]
) -> None:
    assert table.read(fields) == value
    assert table.write(value) == fields


@pytest.mark.parametrize("table", [OFFSET_ANSWER, STORE_TIME_ANSWER, QUERY_MESSAGE_ANSWER])
def test_answer_without_its_fields_is_refused(table: FieldTable[Any]) -> None:
    with pytest.raises(FieldIllegalError):
        table.read({})
