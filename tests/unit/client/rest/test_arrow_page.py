from __future__ import annotations

import orjson
import pyarrow as pa
import pytest

from tests.unit.client.received_messages import ORDERS
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.arrow_page import TablePage, join_pages, table_page
from tidemark.client.rest.connections import Answer
from tidemark.errors import OffsetTooSmallError


def page(queue: TopicQueue, *offsets: int, metadata: dict[str, str] | None = None) -> TablePage:
    table = pa.table({"queue_offset": pa.array(offsets, pa.int64())}).replace_schema_metadata(metadata)
    return TablePage(queue, table, max(offsets, default=0) + 1, [])


def test_pages_of_several_queues_become_one_table_with_the_offset_of_each_message() -> None:
    joined = join_pages([page(ORDERS, 3, 4), page(TopicQueue("users", 7), 9)])
    assert joined is not None
    assert joined.column_names == ["topic", "queue_id", "queue_offset"]
    assert joined.to_pydict() == {
        "topic": ["orders", "orders", "users"],
        "queue_id": [0, 0, 7],
        "queue_offset": [3, 4, 9],
    }


def test_pages_that_differ_in_their_metadata_are_joined() -> None:
    """Each page's metadata has its own next offset."""
    pages = [page(ORDERS, n, metadata={"tidemark.next_offset": str(n + 1)}) for n in range(2)]
    joined = join_pages(pages)
    assert joined is not None
    assert (joined.num_rows, joined.schema.metadata) == (2, None)


def test_no_pages_give_no_table() -> None:
    assert join_pages([]) is None


def test_an_answer_is_a_page_with_its_end_and_its_damaged_records() -> None:
    table = page(ORDERS, 3, 4).table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    headers = {"Tidemark-Next-Offset": "6", "Tidemark-Skipped": '[{"queue_offset":5,"reason":"CRC"}]'}
    found = table_page(ORDERS, Answer(200, headers, memoryview(sink.getvalue())))
    assert (found.table.num_rows, found.next_offset) == (2, 6)
    assert found.skipped == [{"queue_offset": 5, "reason": "CRC"}]


def test_a_refusal_is_raised() -> None:
    body = orjson.dumps({"status": 416, "reason": "OFFSET_TOO_SMALL"})
    with pytest.raises(OffsetTooSmallError):
        table_page(ORDERS, Answer(416, {}, memoryview(body)))
