"""The client's large pages over real HTTP: the same messages in every form."""

from __future__ import annotations

import shutil
from typing import Literal

import pyarrow as pa
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.client import Query
from tidemark.client.answers import QueueTableParameters
from tidemark.client.rest.page import ARROW
from tidemark.format.record import decode_record

pytestmark = pytest.mark.integration
COUNT = 300


@pytest.fixture
def query_of_store(built: BuiltStore) -> BuiltStore:
    """Write messages m0 … m299 of some size, tag A or B."""
    built.topic("events")
    for number in range(COUNT):
        built.append("events", f"m{number}".encode() + bytes(700 * (number % 3)), {"TAGS": "AB"[number % 2]})
    built.publish()
    return built


def _records(data: memoryview) -> list[bytes]:
    bodies = []
    while data:
        size = int.from_bytes(data[:4], "big")
        bodies.append(decode_record(bytes(data[:size])).body)
        data = data[size:]
    return bodies


@pytest.mark.parametrize("max_bytes", [1, 5000, 200_000, 8 << 20])
def test_pages_hold_every_message_once(query_of_store: BuiltStore, max_bytes: int) -> None:
    """The pages are raw and Arrow, of any size, and reuse memory."""
    expected = [f"m{number}".encode() + bytes(700 * (number % 3)) for number in range(COUNT)]
    with serve_query(query_of_store.root) as http, Query(str(http.base_url)) as query:
        found: list[bytes] = []
        for page in query.record_pages("events", 0, 0, max_bytes=max_bytes):
            assert page.requested_offset == len(found)
            found += _records(page.data)
        assert found == expected
        tables = list(query.tables("events", 0, "earliest", max_bytes=max_bytes, max_messages=77))
        whole = pa.concat_tables([table.replace_schema_metadata() for table in tables])
        assert whole["body"].to_pylist() == expected
        assert whole["queue_offset"].to_pylist() == list(range(COUNT))
        assert tables[-1].schema.metadata[b"tidemark.next_offset"] == str(COUNT).encode()


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("dictionaries", [False, True])
def test_tables_have_the_form_that_is_asked_for(
    query_of_store: BuiltStore, compression: Literal["lz4", "zstd"] | None, dictionaries: bool
) -> None:
    """Tables of one queue, of many queues, and with a tag filter."""
    form: QueueTableParameters = {
        "columns": ["body", "tag"],
        "compression": compression,
        "dictionaries": dictionaries,
        "max_bytes": 1 << 20,
    }
    tagged: QueueTableParameters = {**form, "tag": "B"}
    with serve_query(query_of_store.root) as http, Query(str(http.base_url)) as query:
        of_one = pa.concat_tables(query.tables("events", 0, 0, **form))
        of_many = pa.concat_tables(table for _, table in query.tables_of({("events", 0): 0}, **form))
        of_tag = pa.concat_tables(query.tables("events", 0, 0, **tagged))
    assert of_one.schema.names == ["tag", "body"]
    assert pa.types.is_dictionary(of_one.schema.field("tag").type) is dictionaries
    assert of_one["tag"].to_pylist() == ["A", "B"] * (COUNT // 2)
    assert [len(body) > 700 for body in of_one["body"].to_pylist()] == [number % 3 > 0 for number in range(COUNT)]
    assert of_many.to_pylist() == of_one.to_pylist()
    assert of_tag.to_pylist() == of_one.to_pylist()[1::2]


def test_compressed_answers_are_smaller(query_of_store: BuiltStore) -> None:
    path, accept = "/v1/topics/events/queues/0/messages?max_bytes=1000000", {"Accept": ARROW}
    with serve_query(query_of_store.root) as http:
        plain, lz4 = (len(http.get(path + more, headers=accept).content) for more in ("", "&compression=lz4"))
    assert lz4 < plain / 4


def test_pages_of_a_tag_hold_its_messages(query_of_store: BuiltStore) -> None:
    """The service filters."""
    with serve_query(query_of_store.root) as http, Query(str(http.base_url)) as query:
        tables = query.tables("events", 0, 0, tag="B", max_messages=20)
        assert [offset for table in tables for offset in table["queue_offset"].to_pylist()] == list(range(1, COUNT, 2))


def test_an_empty_queue_has_no_pages(query_of_store: BuiltStore) -> None:
    """The iteration ends at once."""
    with serve_query(query_of_store.root) as http, Query(str(http.base_url)) as query:
        assert list(query.record_pages("events", 0, "latest")) == []
        table = query.pull_table("events", 0, "latest")
        assert (table.num_rows, table.schema.metadata[b"tidemark.status"]) == (0, b"OFFSET_OVERFLOW_ONE")


def test_pages_wait_for_new_messages(query_of_store: BuiltStore) -> None:
    """With wait_ms the next page has messages that were appended after the last page."""
    with serve_query(query_of_store.root) as http, Query(str(http.base_url)) as query:
        pages = query.record_pages("events", 0, COUNT - 1, wait_ms=10_000)
        assert next(pages).message_count == 1
        query_of_store.append("events", b"new")
        query_of_store.publish()
        assert _records(next(pages).data) == [b"new"]


def test_pages_end_before_lost_units(query_of_store: BuiltStore) -> None:
    """The queue keeps its end, and no page is repeated."""
    with serve_query(query_of_store.root) as http, Query(str(http.base_url)) as query:
        assert query.pull("events", 0, 0)["max_offset"] == COUNT
        shutil.rmtree(query_of_store.root / "consumequeue" / "events")
        pages = list(query.record_pages("events", 0, 5))
        assert [(page.next_offset, page.max_offset, page.message_count) for page in pages] in ([], [(5, COUNT, 0)])
        page = query.pull("events", 0, 5)
        assert [(skip["queue_offset"], skip["message_count"]) for skip in page["skipped"]] == [(5, COUNT - 5)]
