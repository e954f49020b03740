"""GET /v1/log and its sub-resources: the CommitLog's files, records and bytes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.integration.writer.harness import RunningWriter
from tests.query_server import serve_query
from tidemark.v1 import commit_log_pb2

pytestmark = pytest.mark.integration

FILE_SIZE = 4096


@pytest.fixture
def rolled(tmp_path: Path) -> BuiltStore:
    """Return a store of several files."""
    store = BuiltStore(tmp_path / "store", log_file_size=FILE_SIZE)
    store.topic("orders", queues=2)
    for number in range(10):
        store.append("orders", b"x" * 900, queue_id=number % 2)
    store.publish()
    return store


def answer(client: httpx.Client, path: str, **arguments: int) -> Any:
    response = client.get(path, params=arguments)
    assert response.status_code == 200, response.text
    return response.json()


def test_the_log_answer_has_files_and_end_offsets(rolled: BuiltStore) -> None:
    """The flushed offset is null, because no writer runs."""
    with serve_query(rolled.root) as client:
        log = answer(client, "/v1/log")
    assert [file["start"] for file in log["files"]] == [0, FILE_SIZE, 2 * FILE_SIZE]
    assert [file["blank_at"] is None for file in log["files"]] == [False, False, True]
    assert (log["file_size_bytes"], log["file_count"], log["min_physical_offset"]) == (FILE_SIZE, 3, 0)
    assert (log["written_offset"], log["committed_offset"], log["flushed_offset"]) == (rolled.end, rolled.end, None)
    assert log["watermark"]["physical_offset"] == rolled.end


def test_pages_of_log_files_link_to_the_next(rolled: BuiltStore) -> None:
    with serve_query(rolled.root) as client:
        first = answer(client, "/v1/log", limit=2)
        second = answer(client, "/v1/log", **{"from": first["next_from"]})
    assert [file["start"] for file in first["files"] + second["files"]] == [0, FILE_SIZE, 2 * FILE_SIZE]
    assert second["next_from"] is None


def test_a_running_writer_reports_its_flushed_offset(tmp_path: Path) -> None:
    """In flush mode sync it has flushed all answered messages."""
    with RunningWriter(tmp_path / "store") as writer:
        writer.append("orders", messages=commit_log_pb2.MessageList(messages=[commit_log_pb2.Message(body=b"hello")]))
        with serve_query(writer.root) as client:
            log = answer(client, "/v1/log")
    assert log["written_offset"] == log["flushed_offset"] == log["committed_offset"] > 0


def test_the_record_list_has_the_appended_records(rolled: BuiltStore) -> None:
    """Page by page, the records and blank ends are the whole log."""
    records: list[dict[str, Any]] = []
    with serve_query(rolled.root) as client:
        while (position := records[-1]["physical_offset"] + records[-1]["size"] if records else 0) < rolled.end:
            page = answer(client, "/v1/log/records", **{"from": position, "max": 3})
            assert page["next_from"] == page["records"][-1]["physical_offset"] + page["records"][-1]["size"]
            records += page["records"]
    messages = [record for record in records if record["kind"] == "V1"]
    assert [(one["topic"], one["queue_id"], one["queue_offset"]) for one in messages] == [
        ("orders", number % 2, number // 2) for number in range(10)
    ]
    assert {record["kind"] for record in records} == {"V1", "BLANK"}


def test_log_bytes_equal_those_of_the_file(rolled: BuiltStore) -> None:
    """A range ends with its file."""
    with serve_query(rolled.root) as client:
        found = answer(client, "/v1/log/bytes", **{"from": FILE_SIZE - 10, "size": 100})
    stored = (rolled.root / "commitlog" / f"{0:020d}").read_bytes()
    assert base64.b64decode(found["data"]) == stored[-10:]
    assert (found["size"], found["file_start"]) == (10, 0)


def test_one_request_returns_at_most_the_configured_bytes(rolled: BuiltStore) -> None:
    with serve_query(rolled.root, query_max_log_bytes=7) as client:
        assert answer(client, "/v1/log/bytes", **{"from": 0, "size": 100})["size"] == 7


@pytest.mark.parametrize("path", ["/v1/log/records", "/v1/log/bytes"])
def test_a_log_read_above_the_committed_offset_is_416(rolled: BuiltStore, path: str) -> None:
    """At its end there is nothing yet; bytes of the file after it are never shown."""
    with serve_query(rolled.root) as client:
        at_end = answer(client, path, **{"from": rolled.end})
        above = client.get(path, params={"from": rolled.end + 1})
    assert at_end.get("records") == [] or at_end.get("data") == ""
    assert (above.status_code, above.json()["reason"]) == (416, "OFFSET_OUT_OF_RANGE")
    assert above.json()["max_offset"] == rolled.end


@pytest.mark.parametrize("path", ["/v1/log/records", "/v1/log/bytes"])
def test_a_log_read_below_the_minimum_is_410(rolled: BuiltStore, path: str) -> None:
    """Retention has removed the first file."""
    (rolled.root / "commitlog" / f"{0:020d}").unlink()
    with serve_query(rolled.root) as client:
        response = client.get(path, params={"from": 5})
    assert (response.status_code, response.json()["reason"]) == (410, "OFFSET_TOO_SMALL")
    assert response.json()["min_offset"] == FILE_SIZE


def test_an_empty_store_has_an_empty_log(tmp_path: Path) -> None:
    with serve_query(tmp_path) as client:
        log = answer(client, "/v1/log")
        assert (log["files"], log["written_offset"], log["durable_offset"]) == ([], 0, None)
        assert answer(client, "/v1/log/records", **{"from": 0})["records"] == []
