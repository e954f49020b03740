"""Offset requests and lookups."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting import offsets
from tidemark.remoting.field_table import FieldTable

PLACE = {"topic": "T", "queueId": "2"}
OF_GROUP = {"consumerGroup": "g", **PLACE}
CASES: list[tuple[FieldTable[Any], dict[str, str], tuple[Any, ...]]] = [
    (
        offsets.QUERY_CONSUMER_OFFSET,
        {**OF_GROUP, "setZeroIfNotFound": "false"},
        offsets.QueryConsumerOffset("g", "T", 2, False),
    ),
    (offsets.QUERY_CONSUMER_OFFSET, OF_GROUP, offsets.QueryConsumerOffset("g", "T", 2)),
    (
        offsets.UPDATE_CONSUMER_OFFSET,
        {**OF_GROUP, "commitOffset": "360"},
        offsets.UpdateConsumerOffset("g", "T", 2, 360),
    ),
    (
        offsets.SEARCH_OFFSET,
        {**PLACE, "timestamp": "1795639262260", "boundaryType": "UPPER"},
        offsets.SearchOffset("T", 2, 1795639262260, offsets.BoundaryType.UPPER),
    ),
    (offsets.MAX_OFFSET, {**PLACE, "committed": "false"}, offsets.MaxOffset("T", 2, False)),
    (offsets.QUEUE_REQUEST, PLACE, offsets.QueueRequest("T", 2)),
    (
        offsets.QUERY_MESSAGE,
        {
            "topic": "T",
            "key": "k",
            "maxNum": "32",
            "beginTimestamp": "0",
            "endTimestamp": "9223372036854775807",
            "_UNIQUE_KEY_QUERY": "true",
        },
        offsets.QueryMessage("T", "k", 32, 0, (1 << 63) - 1, True),
    ),
    (offsets.VIEW_MESSAGE, {"offset": "1000000000000", "topic": "T"}, offsets.ViewMessage(1_000_000_000_000, "T")),
    (offsets.VIEW_MESSAGE, {"offset": "7"}, offsets.ViewMessage(7)),
]


@pytest.mark.parametrize(("table", "fields", "value"), CASES)
def test_both_directions_have_the_fields_of_the_request(
    table: FieldTable[Any], fields: dict[str, str], value: tuple[Any, ...]
) -> None:
    assert table.read(fields) == value
    assert table.write(value) == fields


def test_absent_fields_have_their_defaults() -> None:
    assert offsets.SEARCH_OFFSET.read({**PLACE, "timestamp": "1"}).boundary_type is offsets.BoundaryType.LOWER
    assert offsets.MAX_OFFSET.read(PLACE).committed


def test_unknown_boundary_type_is_refused() -> None:
    with pytest.raises(FieldIllegalError, match=r"^boundaryType is 'MIDDLE'; it must be LOWER or UPPER$"):
        offsets.SEARCH_OFFSET.read({**PLACE, "timestamp": "1", "boundaryType": "MIDDLE"})
