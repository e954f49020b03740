"""Attachment to a real broker that appends, rolls, is killed and expires: Tidemark's answers equal those of its client.

`tidemark serve --attach` runs as a user starts it, on a read-only mount of the store if the machine allows it.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.bodies import body_of
from tests.integration.attach.served import Served
from tests.waiting import until

from .attached_readers import Consumer, Readers
from .attached_sender import QUEUES, Sender
from .file_sizes import FileSizes
from .real_broker import RealBroker
from .rocket_client import Answer

pytestmark = [pytest.mark.conformance, pytest.mark.exhaustive]

SIZES = FileSizes(
    commit_log=1 << 18, consume_queue=4_000, batch_consume_queue=4_600, index_slots=100, index_entries=400
)
INDEX_SIZES = {"TIDEMARK_INDEX_SLOTS": str(SIZES.index_slots), "TIDEMARK_INDEX_ENTRIES": str(SIZES.index_entries)}
EVERY_HOUR = ";".join(f"{hour:02d}" for hour in range(24))
OURS = {"tidemark", "logs", "state"}
SETTINGS: list[dict[str, object]] = [
    {"flushDiskType": "ASYNC_FLUSH"},
    {"flushDiskType": "SYNC_FLUSH"},
    {"flushDiskType": "ASYNC_FLUSH", "messageIndexEnable": "false"},
]


def ours_as_theirs(message: Answer) -> Answer:
    """Return the fields that a message of the Java client has, in its form."""
    body = body_of(message)
    return {
        "queue_offset": message["queue_offset"],
        "physical_offset": message["physical_offset"],
        "body": body,
        "tag": message["tag"],
        "keys": list(message["keys"]),
        "born_timestamp_ms": message["born_timestamp_ms"],
        "store_timestamp_ms": message["store_timestamp_ms"],
        "born_host": message["born_host"],
        "store_host": message["store_host"],
        "flag": message["flag"],
    }


def theirs(message: Answer) -> Answer:
    properties = message["properties"]
    return {
        **{
            name: message[name]
            for name in (
                "queue_offset",
                "physical_offset",
                "born_timestamp_ms",
                "store_timestamp_ms",
                "born_host",
                "store_host",
                "flag",
            )
        },
        "body": body_of(message),
        "tag": properties.get("TAGS") or None,
        "keys": [key for key in properties.get("KEYS", "").split(" ") if key],
    }


def require_the_same(broker: RealBroker, readers: Readers, sender: Sender, client: httpx.Client) -> int:
    """Compare every message of every queue, the senders' answers, bounds and offsets by time; return the count."""
    count = 0
    for topic in QUEUES:
        for queue in broker.client.queues(topic):
            consumer = readers.consumers[topic, queue["queue_id"]]
            until(functools.partial(has_come, consumer, queue["max_offset"]), "all is consumed")
            readers.require_no_failure()
            told = [theirs(message) for message in broker.client.read_queue(topic, queue)]
            mine = [ours_as_theirs(message) for message in consumer.seen]
            assert mine == told
            offsets = [message["queue_offset"] for message in mine]
            assert offsets == list(range(queue["min_offset"], queue["max_offset"]))
            by_offset = {message["queue_offset"]: message["body"] for message in mine}
            for offset, body in sender.sent.get((topic, queue["queue_id"]), []):
                assert by_offset[offset] == body
            require_times(broker, client, topic, queue, mine)
            count += len(mine)
    return count


def has_come(consumer: Consumer, offset: int) -> bool:
    return consumer.next_offset >= offset or consumer.failure is not None


def require_times(broker: RealBroker, client: httpx.Client, topic: str, queue: Answer, mine: list[Answer]) -> None:
    path = f"/v1/topics/{topic}/queues/{queue['queue_id']}"
    bounds = client.get(path).json()
    assert (bounds["min_offset"], bounds["max_offset"]) == (queue["min_offset"], queue["max_offset"])
    for message in mine[:: max(1, len(mine) // 5)]:
        answer = client.get(
            f"{path}/offset", params={"time": message["store_timestamp_ms"], "semantics": "rocketmq"}
        ).json()
        expected = broker.client.offset_by_time(topic, queue["queue_id"], message["store_timestamp_ms"])
        assert answer["offset"] == expected


def find(client: httpx.Client, topic: str, key: str) -> list[int]:
    response = client.get(f"/v1/topics/{topic}/messages", params={"key": key, "limit": 1000})
    assert response.status_code == 200, response.text
    return sorted({message["physical_offset"] for message in response.json()["messages"]})


def require_keys(broker: RealBroker, sender: Sender, client: httpx.Client, *, indexed: bool) -> None:
    """With the broker's index, require its client's results; without one, those of the messages' keys."""
    chosen = random.Random(0).sample(sender.keys, 25)
    for topic, key in [*chosen, *(("orders", f"shared{n}") for n in range(7))]:
        until(functools.partial(finds_the_same, broker, client, topic, key, indexed), f"{topic} {key} is found")


def finds_the_same(broker: RealBroker, client: httpx.Client, topic: str, key: str, indexed: bool) -> bool:
    told = broker.client.query_key(topic, key)
    assert indexed or told == []
    return find(client, topic, key) == (told if indexed else by_scan(client, topic, key))


def by_scan(client: httpx.Client, topic: str, key: str) -> list[int]:
    """Return records of a topic with the key, read one by one; for an inner batch the wrapper's keys count."""
    return sorted(
        {
            message["physical_offset"]
            for queue in client.get(f"/v1/topics/{topic}").json()["queues"]
            for message in whole_queue(client, topic, queue)
            if key in message["keys"] and topic != "packed"
        }
    )


def whole_queue(client: httpx.Client, topic: str, queue: Answer) -> Iterator[Answer]:
    offset = queue["min_offset"]
    while offset < queue["max_offset"]:
        path = f"/v1/topics/{topic}/queues/{queue['queue_id']}/messages"
        answer = client.get(path, params={"offset": offset}).json()
        yield from answer["messages"]
        offset = answer["next_offset"]


def tell(capsys: pytest.CaptureFixture[str], counts: str) -> None:
    """Print, also when the test passes."""
    with capsys.disabled():
        print(f"\n{counts}")  # noqa: T201 - the counts are part of the evidence


def create_topics(broker: RealBroker) -> None:
    for topic, queues in QUEUES.items():
        broker.client.create_topic(topic, queues=queues, batch=topic == "packed")


@pytest.mark.parametrize("seed", range(len(SETTINGS)))
def test_attach_follows_a_broker_that_appends_rolls_and_is_killed(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """It covers the time before its first message, many files, a SIGKILL, a clean stop, and a restart of Tidemark."""
    settings = SETTINGS[seed]
    store, state = tmp_path / "store", tmp_path / "state"
    indexed = "messageIndexEnable" not in settings
    with RealBroker(store, tmp_path / "work", sizes=SIZES, settings=settings) as broker:
        create_topics(broker)
        sender = Sender(broker.client, seed)
        sender.send_some(20)
        with (
            Served(store, state, environment=INDEX_SIZES) as served,
            httpx.Client(base_url=served.url, timeout=60) as client,
        ):
            with Readers(served.url) as readers:
                sender.send_some(150)
                broker.kill()
                broker.start()
                broker.client.wait_until_known("orders")
                sender.send_some(100)
                broker.stop()
                broker.start()
                broker.client.wait_until_known("orders")
                sender.send_some(100)
                time.sleep(2)  # delayed messages of level 1 come to their topic within a second
                count = require_the_same(broker, readers, sender, client)
                require_keys(broker, sender, client, indexed=indexed)
            readers.require_no_failure()
            assert client.get("/v1/corruptions").json()["total"] == 0
            files = client.get("/v1/status").json()["log"]["files"]
            served.stop()
        assert not {path.name for path in store.iterdir()} & OURS
        tell(
            capsys,
            f"attached, seed {seed}: {count} messages, {files} log files, {sum(readers.watcher.looks.values())} looks "
            f"at the watermark, terms {sorted(readers.watcher.looks)}, read-only mount: {served.is_read_only}",
        )


def test_attach_follows_a_broker_that_expires_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The broker's own cleaning removes files while they are read: only 410 occurs, and then the same bounds."""
    settings = {"fileReservedTime": 0, "deleteWhen": EVERY_HOUR, "cleanResourceInterval": 1_000}
    store, state = tmp_path / "store", tmp_path / "state"
    with RealBroker(store, tmp_path / "work", sizes=SIZES, settings=settings) as broker:
        create_topics(broker)
        sender = Sender(broker.client, 1)
        sender.send_some(150)
        with (
            Served(store, state, environment=INDEX_SIZES) as served,
            httpx.Client(base_url=served.url, timeout=60) as client,
        ):
            first = client.get("/v1/status").json()["log"]["min_physical_offset"]
            assert first == 0
            refused = 0
            with Readers(served.url) as readers:
                deadline = time.monotonic() + 300  # its cleaning begins a minute after its start
                while client.get("/v1/status").json()["log"]["min_physical_offset"] < 5 * SIZES.commit_log:
                    sender.send_some(5)
                    for path in ("/v1/topics/orders/messages?key=shared1", "/v1/topics/orders/messages?limit=5"):
                        assert client.get(path).status_code == 200
                    refused += sum(begins_at_zero(client, topic, queue_id) for topic, queue_id in readers.consumers)
                    assert time.monotonic() < deadline, "the broker deleted no file"
                    readers.require_no_failure()
            readers.require_no_failure()
            assert refused > 0
            seen = sum(len(consumer.seen) for consumer in readers.consumers.values())
            until(functools.partial(is_expired, client), "only the last file is left")
            for topic in QUEUES:
                until(functools.partial(same_bounds, broker, client, topic), f"bounds of {topic}")
                for queue in broker.client.queues(topic):
                    mine = [ours_as_theirs(message) for message in whole_queue(client, topic, queue)]
                    assert mine == [theirs(message) for message in broker.client.read_queue(topic, queue)]
            late = client.get("/v1/topics/orders/queues/0/messages?offset=0")
            assert late.status_code == 410
            assert late.json()["min_offset"] == client.get("/v1/topics/orders/queues/0").json()["min_offset"]
            served.stop()
        tell(capsys, f"attached, expiry: {seen} messages read, {refused} pulls below the minimum")


def begins_at_zero(client: httpx.Client, topic: str, queue_id: int) -> int:
    """Pull from the beginning, and after a 410 from its minimum; return the number of 410s."""
    path = f"/v1/topics/{topic}/queues/{queue_id}/messages"
    offset = refused = 0
    while (response := client.get(path, params={"offset": offset, "max_messages": 20})).status_code == 410:
        answer = response.json()
        assert answer["min_offset"] > offset
        offset = answer["min_offset"]
        refused += 1
    assert response.status_code == 200, response.text
    assert all(message["queue_offset"] >= offset for message in response.json()["messages"])
    return refused


def is_expired(client: httpx.Client) -> bool:
    """Return True if the log begins in the file in which it ends, so that no more files expire."""
    end = client.get("/v1/watermark").json()["watermark"]["physical_offset"]
    begin = client.get("/v1/status").json()["log"]["min_physical_offset"]
    return bool(begin == end - end % SIZES.commit_log)


def same_bounds(broker: RealBroker, client: httpx.Client, topic: str) -> bool:
    """The broker corrects a minimum only at its cleaning."""
    return all(
        (bounds := client.get(f"/v1/topics/{topic}/queues/{queue['queue_id']}").json())["min_offset"]
        == queue["min_offset"]
        and bounds["max_offset"] == queue["max_offset"]
        for queue in broker.client.queues(topic)
    )
