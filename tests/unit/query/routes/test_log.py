from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp
from tidemark.store.flushed import Flushed
from tidemark.store.storage import DiskStorage

FILE_SIZE = 1024


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    """Three files with two records each."""
    store = BuiltStore(tmp_path / "store", log_file_size=FILE_SIZE)
    store.topic("orders", queues=2)
    for number in range(6):
        store.append("orders", b"x" * 350, queue_id=number % 2)
    store.publish()
    return store


@pytest.fixture
def service(built: BuiltStore) -> Iterator[ServedApp]:
    with ServedApp(built) as served:
        yield served


def answer(service: ServedApp, path: str, **params: int) -> Any:
    found = service.get(path, params={name.rstrip("_"): value for name, value in params.items()})
    assert found.status_code == 200, found.text
    return found.json()


def test_files_have_the_times_and_ends_of_their_records(service: ServedApp, built: BuiltStore) -> None:
    files = answer(service, "/v1/log")["files"]
    assert [file["start"] for file in files] == [0, FILE_SIZE, 2 * FILE_SIZE]
    assert [file["first_store_ms"] for file in files] == [built.clock - 5, built.clock - 3, built.clock - 1]
    size = built.end - 2 * FILE_SIZE  # of two records
    assert [file["blank_at"] for file in files] == [size, FILE_SIZE + size, None]


def test_a_page_of_files_names_the_next_one(service: ServedApp) -> None:
    first = answer(service, "/v1/log", limit=2)
    assert (len(first["files"]), first["next_from"], first["file_count"]) == (2, 2 * FILE_SIZE, 3)
    assert answer(service, "/v1/log", from_=first["next_from"])["next_from"] is None


def test_the_flushed_offset_is_the_one_that_the_writer_reported(service: ServedApp, built: BuiltStore) -> None:
    assert answer(service, "/v1/log")["flushed_offset"] is None
    path = service.state.store.paths.flushed
    path.parent.mkdir(parents=True, exist_ok=True)
    Flushed.open_to_write(path, DiskStorage(), flushed_offset=FILE_SIZE, commits_ahead=False).close()
    log = answer(service, "/v1/log")
    assert (log["flushed_offset"], log["written_offset"]) == (FILE_SIZE, built.end)


def test_records_and_blank_records_cover_the_whole_log(service: ServedApp, built: BuiltStore) -> None:
    position, kinds, offsets = 0, [], []
    while position < built.end:
        page = answer(service, "/v1/log/records", from_=position, max=2)
        for record in page["records"]:
            assert record["physical_offset"] == position
            position += record["size"]
            kinds.append(record["kind"])
            offsets.append((record["queue_id"], record["queue_offset"]))
        assert page["next_from"] == position
    assert kinds == ["V1", "V1", "BLANK", "V1", "V1", "BLANK", "V1", "V1"]
    assert [place for place in offsets if place != (None, None)] == [(n % 2, n // 2) for n in range(6)]


def test_a_range_that_begins_within_a_record_begins_with_a_gap(service: ServedApp, built: BuiltStore) -> None:
    size = (built.end - 2 * FILE_SIZE) // 2  # of one record
    gap, record = answer(service, "/v1/log/records", from_=10, max=2)["records"]
    assert (gap["kind"], gap["size"], record["kind"], record["physical_offset"]) == ("GAP", size - 10, "V1", size)


def test_bytes_are_as_stored_and_end_with_their_file(service: ServedApp, built: BuiltStore) -> None:
    stored = (built.root / "commitlog" / f"{FILE_SIZE:020d}").read_bytes()
    found = answer(service, "/v1/log/bytes", from_=2 * FILE_SIZE - 10, size=100)
    assert (base64.b64decode(found["data"]), found["file_start"]) == (stored[-10:], FILE_SIZE)


def test_bytes_end_with_the_committed_log(service: ServedApp, built: BuiltStore) -> None:
    assert answer(service, "/v1/log/bytes", from_=built.end - 5, size=100)["size"] == 5


def test_one_log_request_returns_at_most_the_configured_bytes(built: BuiltStore) -> None:
    with ServedApp(built, query_max_log_bytes=7) as service:
        assert answer(service, "/v1/log/bytes", from_=0, size=100)["size"] == 7


@pytest.mark.parametrize("path", ["/v1/log/records", "/v1/log/bytes"])
def test_an_offset_outside_the_log_is_refused_with_its_bounds(service: ServedApp, built: BuiltStore, path: str) -> None:
    assert service.get(path, params={"from": built.end}).status_code == 200
    above = service.get(path, params={"from": built.end + 1})
    assert (above.status_code, above.json()["max_offset"]) == (416, built.end)
    (built.root / "commitlog" / f"{0:020d}").unlink()
    with ServedApp(built) as fresh:
        below = fresh.get(path, params={"from": 5})
    assert (below.status_code, below.json()["min_offset"]) == (410, FILE_SIZE)
