"""Readers over real HTTP while files of the log, the queues and the index are removed."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.indexer.query import app
from services.indexer.query.state.housekeeping import close_deleted_files
from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.watermark import Watermark

pytestmark = pytest.mark.integration

COUNT = 240
FORMATS = (
    "application/json",
    "application/x-ndjson",
    "application/vnd.apache.arrow.stream",
    "application/octet-stream",
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> BuiltStore:
    """Write 240 messages to `orders` and 80 inner batches of three to `batches`: ten log files, 20 units a file."""
    store = BuiltStore(tmp_path_factory.mktemp("template") / "store", log_file_size=8192, units_a_file=20)
    store.topic("orders", queues=2)
    store.topic("batches", batch=True)
    for number in range(COUNT):
        store.append("orders", b"m%03d" % number + bytes(80), {"KEYS": f"k{number % 5}"})
        if number % 3 == 2:
            store.append_batch("batches", [(b"b%03d.%d" % (number, i) + bytes(20), {}, 0) for i in range(3)])
    store.publish()
    return store


@pytest.fixture
def root(template: BuiltStore, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return Path(shutil.copytree(template.root, tmp_path / "store"))


@pytest.fixture
def client(template: BuiltStore, root: Path) -> Iterator[httpx.Client]:
    with serve_query(root, index_slots=template.slots, index_entries=template.entries) as client:
        yield client


def expire(root: Path, files: int) -> int:
    """Remove the log's first files, then queue and index files with no later messages; return the log's minimum."""
    log = sorted((root / "commitlog").iterdir())
    log_min = int(log[files].name)
    for path in log[:files]:
        path.unlink()
    for folder, unit_size in (("consumequeue/orders/0", 20), ("batchconsumequeue/batches/0", 46)):
        for path in sorted((root / folder).iterdir())[:-1]:
            if int.from_bytes(path.read_bytes()[-unit_size:][:8], "big") < log_min:
                path.unlink()
    for path in sorted((root / "index").iterdir())[:-1]:
        if int.from_bytes(path.read_bytes()[24:32], "big") < log_min:
            path.unlink()
    return log_min


def messages_path(topic: str) -> str:
    return f"/v1/topics/{topic}/queues/0/messages"


def bounds_of(client: httpx.Client, topic: str) -> tuple[int, int]:
    queue = client.get(f"/v1/topics/{topic}/queues/0").json()
    return queue["min_offset"], queue["max_offset"]


@pytest.mark.parametrize("accept", FORMATS)
@pytest.mark.parametrize("topic", ["orders", "batches"])
def test_a_pull_below_the_minimum_is_410_with_the_next_offset(
    root: Path, client: httpx.Client, topic: str, accept: str
) -> None:
    """This holds in every form; from next_offset on all remaining messages are there."""
    expire(root, 4)
    first, end = bounds_of(client, topic)
    assert 0 < first < end == COUNT
    gone = client.get(messages_path(topic), params={"offset": first - 1}, headers={"Accept": accept})
    assert (gone.status_code, gone.headers["content-type"]) == (410, "application/problem+json")
    facts = gone.json()
    assert facts["reason"] == "OFFSET_TOO_SMALL"
    assert (facts["next_offset"], facts["min_offset"], facts["max_offset"]) == (first, first, end)
    there = client.get(messages_path(topic), params={"offset": first, "max_messages": 1000}, headers={"Accept": accept})
    assert there.status_code == 200
    if accept == "application/json":
        assert [message["queue_offset"] for message in there.json()["messages"]] == list(range(first, end))
        earliest = client.get(messages_path(topic), params={"offset": "earliest"}).json()
        assert (earliest["requested_offset"], earliest["messages"][0]["queue_offset"]) == (first, first)


class ExpiringBetween:
    """Removes files once, right after a request has read a queue's bounds."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = QueueReader.bounds
        self.done = False

        def bounds(queue: QueueReader, watermark: Watermark, **more: Any) -> QueueBounds:
            seen = real(queue, watermark, **more)
            if not self.done:
                self.done = True
                expire(root, 4)
            return seen

        monkeypatch.setattr(QueueReader, "bounds", bounds)


@pytest.mark.parametrize(
    ("accept", "semantics"), [*((accept, "tidemark") for accept in FORMATS), (FORMATS[0], "rocketmq")]
)
@pytest.mark.parametrize("topic", ["orders", "batches"])
@pytest.mark.parametrize("offset", ["30", "earliest"])
def test_files_deleted_between_lookup_and_read_are_never_an_error(
    root: Path,
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    topic: str,
    accept: str,
    semantics: str,
    offset: str,
) -> None:
    """A number gets 410 with the new minimum, `earliest` continues with it; a broker's client gets its own form."""
    ExpiringBetween(root, monkeypatch)
    answer = client.get(
        messages_path(topic), params={"offset": offset, "semantics": semantics}, headers={"Accept": accept}
    )
    first, _ = bounds_of(client, topic)
    assert answer.status_code in (200, 410), answer.text
    if semantics == "tidemark":
        assert answer.status_code == (200 if offset == "earliest" else 410)
        if answer.status_code == 410:
            assert answer.json()["next_offset"] == first > 0
        elif accept == "application/json":
            assert answer.json()["messages"][0]["queue_offset"] == first


def test_files_deleted_during_a_multi_pull_are_answered_per_queue(
    root: Path, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each queue is answered separately with its new bounds."""
    ExpiringBetween(root, monkeypatch)
    asked = [("orders", 0, 30), ("batches", 0, "earliest"), ("orders", 1, 0)]
    queues = [{"topic": topic, "queue_id": queue_id, "offset": offset} for topic, queue_id, offset in asked]
    gone, there, *_ = client.post("/v1/pull", json={"queues": queues}).json()["answers"]
    first, _ = bounds_of(client, "orders")
    assert (gone["reason"], gone["queue_id"], gone["next_offset"]) == ("OFFSET_TOO_SMALL", 0, first)
    assert there["messages"][0]["queue_offset"] == bounds_of(client, "batches")[0] > 0


@pytest.mark.parametrize("path", ["at", "id"])
@pytest.mark.parametrize("late", [False, True])
def test_a_lookup_of_a_deleted_offset_is_410(
    root: Path, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str, late: bool
) -> None:
    """The problem has the log's minimum, also if the file is removed during the lookup."""
    message = client.get(messages_path("orders"), params={"offset": 3}).json()["messages"][0]
    place = message["physical_offset"] if path == "at" else message["offset_msg_id"]
    url = f"/v1/messages/at/{place}" if path == "at" else f"/v1/messages/{place}"
    assert client.get(url).status_code == 200
    log_min = 0
    if late:
        ExpiringBetween(root, monkeypatch)
        assert client.get(url).status_code in (200, 410)  # its bytes had been read
        log_min = int(min((root / "commitlog").iterdir()).name)
    else:
        log_min = expire(root, 4)
    answer = client.get(url)
    assert (answer.status_code, answer.json()["reason"]) == (410, "OFFSET_TOO_SMALL")
    assert answer.json()["min_physical_offset"] == log_min


@pytest.mark.parametrize("topic", ["orders", "batches"])
@pytest.mark.parametrize("semantics", ["tidemark", "rocketmq"])
@pytest.mark.parametrize("boundary", ["lower", "upper"])
@pytest.mark.parametrize("late", [False, True])
def test_the_earliest_time_gives_the_minimum_offset(
    root: Path,
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    topic: str,
    semantics: str,
    boundary: str,
    late: bool,
) -> None:
    """A time of deleted messages gives the first remaining one, without an error meanwhile."""
    arguments: dict[str, str | int] = {"time": 0, "boundary": boundary, "semantics": semantics}
    if late:
        ExpiringBetween(root, monkeypatch)
        meanwhile = client.get(f"/v1/topics/{topic}/queues/0/offset", params=arguments)
        assert meanwhile.status_code == 200
    else:
        expire(root, 4)
    answer = client.get(f"/v1/topics/{topic}/queues/0/offset", params=arguments).json()
    assert answer["offset"] == answer["min_offset"] > 0


def test_only_keys_of_existing_messages_are_found(root: Path, client: httpx.Client) -> None:
    """A cursor within deleted messages continues at the minimum."""
    page = client.get("/v1/topics/orders/messages", params={"key": "k1", "limit": 2}).json()
    log_min = expire(root, 4)
    found = client.get("/v1/topics/orders/messages", params={"key": "k1", "limit": 1000}).json()["messages"]
    assert found and all(message["physical_offset"] >= log_min for message in found)
    arguments: dict[str, Any] = {"key": "k1", "limit": 2, "cursor": page["next_cursor"]}
    following = client.get("/v1/topics/orders/messages", params=arguments).json()["messages"]
    assert following == found[:2]
    scanned = client.get("/v1/topics/orders/messages", params={"limit": 1000}).json()["messages"]
    assert scanned[0]["physical_offset"] >= log_min
    assert len(scanned) == COUNT - bounds_of(client, "orders")[0]


def test_a_group_offset_below_the_minimum_is_reported(root: Path, client: httpx.Client) -> None:
    """The answer has the number of messages that expired unread; the lag counts existing ones."""
    path = "/v1/groups/billing/topics/{}/queues/0/offset"
    for topic, offset in (("orders", 10), ("batches", 239)):
        client.put(path.format(topic), json={"offset": offset})
    expire(root, 4)
    first, end = bounds_of(client, "orders")
    group = client.get("/v1/groups/billing").json()
    told = {queue["topic"]: queue for queue in group["queues"]}
    assert (told["orders"]["below_min"], told["orders"]["lag"]) == (first - 10, end - first)
    assert (told["batches"]["below_min"], told["batches"]["lag"]) == (0, 1)
    assert (group["below_min"], group["lag"]) == (first - 10, end - first + 1)
    assert client.get(path.format("orders")).json()["offset"] == 10


@pytest.mark.parametrize("topic", ["orders", "batches"])
def test_a_gap_in_the_queue_files_is_skipped(root: Path, client: httpx.Client, topic: str) -> None:
    """A reader that continues at next_offset gets every remaining message once."""
    unit_size, folder = (20, "consumequeue") if topic == "orders" else (46, "batchconsumequeue")
    units = 20 if topic == "orders" else 60  # messages of a file
    (root / folder / topic / "0" / f"{20 * unit_size:020d}").unlink()
    got: list[int] = []
    cursor = 0
    for _ in range(COUNT):
        answer = client.get(messages_path(topic), params={"offset": cursor, "max_messages": 7}).json()
        got += [message["queue_offset"] for message in answer["messages"]]
        if answer["next_offset"] == cursor:
            break
        cursor = answer["next_offset"]
    assert cursor == COUNT
    assert got == [*range(units), *range(2 * units, COUNT)]
    for offset in (units, units + 1, 2 * units - 1):
        answer = client.get(messages_path(topic), params={"offset": offset, "max_messages": 1}).json()
        assert [message["queue_offset"] for message in answer["messages"]] == [2 * units]


@pytest.mark.parametrize("topic", ["orders", "batches"])
def test_a_gap_in_the_log_is_reported_and_skipped(root: Path, client: httpx.Client, topic: str) -> None:
    """Records of a lost file are reported as skipped."""
    (root / "commitlog" / f"{3 * 8192:020d}").unlink()
    got: list[int] = []
    skipped: list[int] = []
    cursor = 0
    while cursor < COUNT:
        answer = client.get(messages_path(topic), params={"offset": cursor, "max_messages": 30}).json()
        got += [message["queue_offset"] for message in answer["messages"]]
        assert {skip["reason"] for skip in answer["skipped"]} <= {"REMOVED"}
        skipped += [skip["queue_offset"] for skip in answer["skipped"]]
        assert answer["next_offset"] > cursor
        cursor = answer["next_offset"]
    assert skipped
    assert got == sorted(got)
    if topic == "orders":
        assert sorted(got + skipped) == list(range(COUNT))


def test_readers_of_every_kind_continue_while_files_are_deleted(root: Path, client: httpx.Client) -> None:
    """Eight threads send every kind of request while files are removed: only 200, 404 and 410 occur."""
    stop = threading.Event()
    statuses: set[int] = set()
    wrong: list[str] = []

    def ask(number: int) -> None:
        topic = ("orders", "batches")[number % 2]
        urls = itertools.cycle(
            [
                f"{messages_path(topic)}?offset=earliest&max_messages=50",
                f"{messages_path(topic)}?offset=40",
                f"{messages_path(topic)}?offset=20&semantics=rocketmq",
                f"/v1/topics/{topic}/queues/0/offset?time=0",
                f"/v1/topics/{topic}/queues/0",
                "/v1/messages/at/9000",
                f"/v1/topics/{topic}/messages?limit=20",
                "/v1/topics/orders/messages?key=k1&limit=100",
                "/v1/status",
            ]
        )
        with httpx.Client(base_url=client.base_url, timeout=60) as own:
            while not stop.is_set():
                answer = own.get(next(urls), headers={"Accept": FORMATS[number % 3]})
                statuses.add(answer.status_code)
                if answer.status_code not in (200, 404, 406, 410):
                    wrong.append(f"{answer.request.url}: {answer.text}")
                    stop.set()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    while len(list((root / "commitlog").iterdir())) > 1 and not stop.is_set():
        time.sleep(0.3)
        expire(root, 1)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert {200, 410} <= statuses


def test_an_idle_service_releases_deleted_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the disk space is not freed until the next request."""
    monkeypatch.setattr(app, "close_deleted_files", functools.partial(close_deleted_files, every_s=0.05))

    def held() -> list[str]:
        found = []
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/self/fd/{number}"))
        return [path for path in found if path.startswith(str(root)) and path.endswith("(deleted)")]

    with serve_query(root) as client:
        client.get(messages_path("orders"), params={"offset": 0, "max_messages": 1000})
        client.get(messages_path("batches"), params={"offset": 0, "max_messages": 1000})
        expire(root, 4)
        deadline = time.monotonic() + 60
        while held():
            assert time.monotonic() < deadline, held()
            time.sleep(0.01)
