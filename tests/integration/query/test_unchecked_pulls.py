"""Pulls of records that the service does not check: the same bytes as checked ones, and damage is the reader's."""

from __future__ import annotations

import itertools
import socket
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

import httpx
import pyarrow as pa
import pytest

from tests.built_store import BuiltStore, Written
from tests.page_cache import drop_from_page_cache
from tests.query_server import serve_query
from tidemark.client import Query, RecordsPage
from tidemark.client.answers import PageParameters, TablesParameters, TableVerify, Verify
from tidemark.errors import ArgumentIllegalError
from tidemark.format.sys_flag import SysFlag

pytestmark = pytest.mark.integration

OCTETS = {"Accept": "application/octet-stream"}
RUN = 40  # messages that are next to each other in the log
BOTH: tuple[TableVerify, ...] = ("service", "client")  # make tables
PATH = "/v1/topics/runs/queues/0/messages"


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return topics whose messages are next to each other (`runs`, `batches`) or scattered in the log (`mixed`)."""
    store = BuiltStore(tmp_path / "store", units_a_file=70)
    store.topic("runs", queues=2)
    store.topic("mixed", queues=3)
    store.topic("batches", batch=True)
    store.topic("properties")
    for number in range(6 * RUN):
        store.append("runs", _body(number), {"KEYS": f"k{number}"}, queue_id=number // RUN % 2)
    for number in range(200):
        store.append("mixed", _body(number), queue_id=number % 3)
    for number in range(40):
        properties = {"TAGS": "é", "KEYS": f"k{number} l", "UNIQ_KEY": f"{number:032X}", "a": "b"}
        body, flag = (zlib.compress(_body(number)), SysFlag.COMPRESSED) if number % 3 else (_body(number), 0)
        store.append("properties", body, properties, sys_flag=int(flag))
    for number in range(30):
        store.append_batch("batches", [(_body(number * 5 + element), {}, 0) for element in range(5)])
    store.publish()
    return store


def _body(number: int) -> bytes:
    return b"%06d" % number * (100 + number % 70)


def pages(
    query: Query, topic: str, queue_id: int, verify: Verify, **limits: Unpack[PageParameters]
) -> list[RecordsPage]:
    return list(query.record_pages(topic, queue_id, 0, verify=verify, **limits))


def records(found: list[RecordsPage]) -> bytes:
    return b"".join(page.data for page in found)


def write_log(store: BuiltStore, written: Written, at: int, data: bytes) -> None:
    """Damage the record *written* at its byte *at*."""
    store.write_log(written.physical_offset + at, data)


@pytest.mark.parametrize("max_bytes", [1, 3_000, 100_000, 8 << 20])
@pytest.mark.parametrize(("topic", "queue_id"), [("runs", 0), ("runs", 1), ("mixed", 2), ("batches", 0)])
def test_unchecked_pages_are_the_checked_ones(store: BuiltStore, topic: str, queue_id: int, max_bytes: int) -> None:
    with serve_query(store.root) as http, Query(str(http.base_url)) as query:
        expected = pages(query, topic, queue_id, "service", max_bytes=max_bytes)
        assert records(expected)
        for verify in ("none", "client"):
            found = pages(query, topic, queue_id, verify, max_bytes=max_bytes)
            assert found == expected, verify


@pytest.mark.parametrize("limits", [{"max_bytes": 3_000}, {"max_messages": 7}, {"max_bytes": 8 << 20}], ids=str)
@pytest.mark.parametrize(("topic", "queue_id"), [("runs", 0), ("mixed", 2), ("batches", 0), ("properties", 0)])
@pytest.mark.parametrize("offset", [0, 3])
def test_the_client_makes_the_tables_of_the_service(
    store: BuiltStore, topic: str, queue_id: int, limits: PageParameters, offset: int
) -> None:
    """Of batches, offset 3 and max_messages 7 are within one; the client's pages end with whole ones."""
    with serve_query(store.root) as http, Query(str(http.base_url)) as query:
        expected, found = (list(query.tables(topic, queue_id, offset, verify=verify, **limits)) for verify in BOTH)
    assert joined(found).equals(joined(expected))
    assert joined(found).num_rows > 20
    if topic != "batches":
        assert [table.schema.metadata for table in found] == [table.schema.metadata for table in expected]


@pytest.mark.parametrize("topic", ["runs", "batches", "properties"])
def test_the_client_makes_the_columns_that_are_asked_for(store: BuiltStore, topic: str) -> None:
    form: TablesParameters = {"columns": ["tag", "body", "store_host"], "dictionaries": True}
    with serve_query(store.root) as http, Query(str(http.base_url)) as query:
        expected, found = (joined(list(query.tables(topic, 0, 0, verify=verify, **form))) for verify in BOTH)
        assert found.schema == expected.schema
        assert found.schema.names == ["tag", "store_host", "body"]
        assert (
            found.to_pylist()
            == expected.to_pylist()
            == query.pull_table(topic, 0, 0, columns="tag,store_host,body").to_pylist()
        )
        for wrong in ({"compression": "lz4"}, {"columns": ["bodies"]}):
            with pytest.raises(ValueError, match=r"compression: |there is no column 'bodies'"):
                next(query.tables(topic, 0, 0, verify="client", **wrong))


@pytest.mark.parametrize("verify", ["none", "client", "service"])
def test_records_have_no_columns_to_choose(store: BuiltStore, verify: Verify) -> None:
    wrong: Any = {"columns": ["body"]}
    with (
        serve_query(store.root) as http,
        Query(str(http.base_url)) as query,
        pytest.raises(ArgumentIllegalError, match="columns: "),
    ):
        next(query.record_pages("runs", 0, 0, verify=verify, **wrong))


def joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([table.replace_schema_metadata() for table in tables]).combine_chunks()


def test_the_client_asks_for_columns_only_if_it_cannot_make_them(store: BuiltStore) -> None:
    with serve_query(store.root) as http, Query(str(http.base_url)) as query:

        def arrow_bytes() -> float:
            lines = http.get("/metrics").text.splitlines()
            name = 'tidemark_query_body_bytes_total{format="arrow"}'
            return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

        assert list(query.tables("properties", 0, 0, verify="client"))
        assert arrow_bytes() == 0
        assert list(query.tables("properties", 0, 0, verify="service"))
        assert arrow_bytes() > 0


def test_a_waiting_reader_makes_tables_of_new_messages(store: BuiltStore) -> None:
    with serve_query(store.root) as http, Query(str(http.base_url)) as query:
        end = query.queue("runs", 0)["max_offset"]
        tables = query.tables("runs", 0, end - 1, wait_ms=10_000, verify="client", with_empty=True)
        assert next(tables)["queue_offset"].to_pylist() == [end - 1]
        store.append("runs", b"new")
        store.publish()
        assert next(table for table in tables if table.num_rows)["body"].to_pylist() == [b"new"]


def test_many_queues_are_pulled_unchecked(store: BuiltStore) -> None:
    asked: dict[str, Any] = {"topic": ["runs", "mixed"], "max_bytes": 8 << 20, "max_messages": 10_000}
    with serve_query(store.root) as http:
        parts = [
            sorted(part.partition(b"\r\n")[2] for part in answer.content.split(_boundary(answer)))
            for answer in (
                http.get("/v1/pull", params=asked, headers=OCTETS),
                http.get("/v1/pull", params={**asked, "verify": "reader"}, headers=OCTETS),
            )
        ]
    assert len(parts[0]) == 7  # five queues, and both ends
    assert parts[0] == parts[1]


def _boundary(answer: httpx.Response) -> bytes:
    return b"--" + answer.headers["content-type"].partition("boundary=")[2].encode()


def test_records_that_are_not_in_memory_are_sent(store: BuiltStore) -> None:
    with serve_query(store.root) as http, Query(str(http.base_url)) as query:
        expected = records(pages(query, "runs", 0, "service"))
        drop_from_page_cache(store.root / "commitlog")
        assert records(pages(query, "runs", 0, "none")) == expected


Damage = Callable[[BuiltStore, Written, Written], None]
DAMAGE: dict[str, Damage] = {
    "body": lambda store, wrong, _: write_log(store, wrong, wrong.size - 30, b"\0wrong"),
    "length": lambda store, wrong, _: write_log(store, wrong, 0, b"\0\0\1\0"),
    "magic": lambda store, wrong, _: write_log(store, wrong, 4, b"\1\2\3\4"),
    "other record": lambda store, wrong, other: store.write_unit("runs", 0, wrong._replace(
        physical_offset=other.physical_offset, size=other.size), {}),
    "impossible unit": lambda store, wrong, _: store.write_unit("runs", 0, wrong._replace(size=-7), {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_the_client_finds_damage_and_gets_what_the_service_returns(tmp_path: Path, kind: str) -> None:
    """It pulls the page again from the service, which knows from the queue where each record begins."""
    store = BuiltStore(tmp_path / "store")
    store.topic("runs")
    store.topic("others")
    other = store.append("others", _body(1))
    written = [store.append("runs", _body(number)) for number in range(200)]
    store.publish()
    with serve_query(store.root) as http, Query(str(http.base_url)) as query:
        whole = records(pages(query, "runs", 0, "service"))
        lost = read_log(store, written[77])
        DAMAGE[kind](store, written[77], other)
        expected = pages(query, "runs", 0, "service")
        assert [one["queue_offset"] for page in expected for one in page.skipped] == [77]
        assert records(expected) == whole.replace(lost, b"")
        found = pages(query, "runs", 0, "client", max_messages=60)
        assert records(found) == records(expected)
        assert [one for page in found for one in page.skipped] == expected[0].skipped
        by_service, by_client = (
            joined(list(query.tables("runs", 0, 0, verify=verify, max_messages=60))) for verify in BOTH
        )
        assert by_client.num_rows == 199
        assert by_client.equals(by_service)
        unchecked = pages(query, "runs", 0, "none")
        assert (len(records(unchecked)) == len(whole)) is (kind in ("body", "length", "magic"))


def read_log(store: BuiltStore, written: Written) -> bytes:
    """Return the record *written*, which is in the first or a later file of the log."""
    at = written.physical_offset % store.log_file_size
    path = store.root / "commitlog" / f"{written.physical_offset - at:020d}"
    return path.read_bytes()[at : at + written.size]


def test_a_deleted_log_file_is_reported(store: BuiltStore) -> None:
    """The report is that of a checked pull."""
    with serve_query(store.root) as http, Query(str(http.base_url)) as query:
        logs = sorted((store.root / "commitlog").iterdir())
        logs[1].unlink()
        expected = pages(query, "runs", 1, "service")
        assert {one["reason"] for page in expected for one in page.skipped} == {"REMOVED"}
        for verify in ("none", "client"):
            found = pages(query, "runs", 1, verify)
            assert (records(found), found[0].skipped) == (records(expected), expected[0].skipped)


@pytest.mark.parametrize(
    ("more", "headers"),
    [({}, {}), ({"tag": "A"}, OCTETS), ({"semantics": "rocketmq"}, OCTETS), ({"follow": "true"}, OCTETS)],
)
def test_a_reader_cannot_check_what_are_not_whole_records(
    store: BuiltStore, more: dict[str, str], headers: dict[str, str]
) -> None:
    with serve_query(store.root) as http:
        refused = http.get(PATH, params={"verify": "reader", **more}, headers=headers)
        assert (refused.status_code, refused.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")
        assert "verify" in refused.json()["detail"]


def test_clients_that_go_or_stop_reading_hold_nothing_up(store: BuiltStore) -> None:
    """One that takes nothing is disconnected after the write timeout; its answer needs no memory meanwhile."""
    for number in itertools.takewhile(lambda _: store.end < 24 << 20, itertools.count()):
        store.append("runs", bytes(40_000), queue_id=number % 2)
    store.publish()
    request = f"GET {PATH}?verify=reader&max_bytes={16 << 20}&max_messages=30000 HTTP/1.1\r\n"
    request += "Host: here\r\nAccept: application/octet-stream\r\n\r\n"
    with serve_query(store.root, query_write_timeout_ms=1000, query_max_untaken_bytes=4 << 20) as http:
        port = http.base_url.port
        assert port is not None
        gone, idle = socket.create_connection(("127.0.0.1", port)), socket.socket()
        gone.sendall(request.encode())
        assert gone.recv(1000).startswith(b"HTTP/1.1 200")
        gone.close()
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect(("127.0.0.1", port))
        idle.sendall(request.encode())
        with Query(str(http.base_url)) as query:
            expected = records(pages(query, "runs", 0, "service", max_bytes=1 << 20))
            assert records(pages(query, "runs", 0, "none", max_bytes=16 << 20)) == expected
        time.sleep(1.5)
        idle.settimeout(20)
        with pytest.raises(ConnectionResetError):
            _receive(idle, len(expected))
        idle.close()


def _receive(connection: socket.socket, size: int) -> None:
    """Receive *size* bytes, or fewer if the service closes the connection."""
    while size > 0 and (data := connection.recv(min(size, 1 << 20))):
        size -= len(data)
