"""Visible messages while the log grows, is cut, and expires."""

from __future__ import annotations

import shutil
import struct
import threading
from pathlib import Path
from typing import Any

from tests.builders import record_bytes
from tests.built_store import BuiltStore, Written
from tests.waiting import until

from .attached import Attached, attach


def test_existing_and_new_messages_are_visible(broker: BuiltStore, attached: Attached) -> None:
    """Both kinds of queues, and new queues, over rolls of the log and of queue files."""
    attached.wait_for_watermark(broker.end)
    assert attached.bodies("orders") == [f"m{number}" for number in range(10)]
    assert attached.bodies("packed", offset=1) == ["b1", "b2"]
    for number in range(10, 400):
        broker.append("orders", f"m{number}".encode() + bytes(300))
        broker.append("orders", b"other", queue_id=1)
        broker.append_batch("packed", [(b"c", {}, 0), (b"d", {}, 0)])
    assert broker.end > 3 * broker.log_file_size
    attached.wait_for_watermark(broker.end)
    queues = {queue["queue_id"]: queue["max_offset"] for queue in attached.get("/v1/topics/orders")["queues"]}
    assert queues == {0: 400, 1: 390}
    assert [body[:4].rstrip("\0") for body in attached.bodies("orders", offset=390)] == [
        f"m{number}" for number in range(390, 400)
    ]
    assert attached.pull("packed", offset=3)["max_offset"] == 3 + 2 * 390


def test_a_long_poll_is_woken_by_the_broker(broker: BuiltStore, attached: Attached) -> None:
    """It returns the messages that the broker has appended."""
    attached.wait_for_watermark(broker.end)
    answers: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: answers.append(attached.pull("orders", offset=10, wait_ms=30_000)))
    waiting.start()
    until(lambda: attached.get("/v1/status")["query"]["waiting_requests"] == 1, "it waits")
    broker.append("orders", b"new")
    waiting.join()
    assert [message["body"] for message in answers[0]["messages"]] == ["new"]


def test_a_record_is_not_visible_before_its_unit_is_complete(broker: BuiltStore, attached: Attached) -> None:
    """The record is appended but not dispatched, or partly dispatched: it is above the watermark.

    A request is not refused.
    """
    attached.wait_for_watermark(before := broker.end)
    written = broker.append("orders", b"undispatched", unit=False)
    unit = struct.pack(">qiq", written.physical_offset, written.size, 0)
    for part in (0, 8, 11):  # physical offset; all but the last byte of the size
        broker.write_units("orders", 0, 10, unit[:part])
        until(lambda: attached.get("/v1/watermark")["committed_offset"] == broker.end, "the record is seen")
        answer = attached.pull("orders", offset=12)
        assert (answer["status"], answer["max_offset"]) == ("OFFSET_OVERFLOW_ONE", 10)
        assert answer["watermark"]["physical_offset"] == before
        assert answer["lag_bytes"] == broker.end - before
    broker.write_units("orders", 0, 10, unit)
    attached.wait_for_watermark(broker.end)
    assert attached.bodies("orders", offset=10) == ["undispatched"]
    assert attached.client.get("/v1/topics/orders/queues/0/messages?offset=12").status_code == 416


def test_a_partly_written_record_is_not_visible(broker: BuiltStore, attached: Attached) -> None:
    """The log's tail grows byte by byte; no damage is reported."""
    attached.wait_for_watermark(before := broker.end)
    data = record_bytes(topic=b"orders", body=b"slowly", queue_offset=10, physical_offset=broker.end)
    for length in (3, 4, 8, 30, 88, len(data) - 1):
        broker.write_log(broker.end, data[:length])
        attached.let_look()
        assert attached.watermark() == before
    broker.write_log(broker.end, data)
    broker.write_unit("orders", 0, Written(broker.end, len(data), 10, 0), {})
    attached.wait_for_watermark(before + len(data))
    assert attached.bodies("orders", offset=10) == ["slowly"]
    assert attached.get("/v1/corruptions")["total"] == 0


def test_records_that_the_broker_skipped_are_skipped(broker: BuiltStore, attached: Attached) -> None:
    """A record without a unit, a record of a deleted topic, and damage are reported, and later records are shown."""
    attached.wait_for_watermark(broker.end)
    broker.topic("gone")
    broker.append("gone", b"of a deleted topic", unit=False)
    torn = broker.append("orders", b"damaged", unit=False, queue_offset=77)
    broker.write_log(torn.physical_offset + 4, b"XXXX")
    broker.append("orders", b"behind")
    attached.wait_for_watermark(broker.end)
    assert attached.bodies("orders", offset=10) == ["behind"]
    (told,) = attached.get("/v1/corruptions")["corruptions"]
    assert (told["physical_offset"], told["reason"]) == (torn.physical_offset, "MAGIC")


def test_a_truncated_log_begins_a_new_term(broker: BuiltStore, attached: Attached) -> None:
    """Truncation leaves units and bytes; the new records that overwrite them are shown, and no stale ones."""
    attached.wait_for_watermark(broker.end)
    kept, numbers = broker.end, dict(broker.next)
    for number in range(10, 40):
        broker.append("orders", f"lost{number}".encode())
        attached.wait_for_watermark(broker.end)
    first = attached.get("/v1/watermark")["watermark"]
    broker.end, broker.next = kept, numbers
    broker.append("orders", b"anew", queue_id=1)
    until(lambda: attached.get("/v1/watermark")["watermark"]["term"] > first["term"], "the cut is noticed")
    until(lambda: attached.bodies("orders", 1) == ["anew"], "the new record is shown")
    broker.append("orders", b"instead")
    until(lambda: attached.bodies("orders", offset=10)[:1] == ["instead"], "the new record is shown")
    for number in range(100):
        broker.append("orders", f"later{number}".encode())
    attached.wait_for_watermark(broker.end)
    assert attached.bodies("orders", offset=10) == ["instead", *(f"later{number}" for number in range(100))]
    assert attached.pull("orders", offset=10)["skipped"] == []


def test_stale_units_after_the_end_are_not_counted(broker: BuiltStore, tmp_path: Path) -> None:
    """A queue ends with its last record in the log: a consumer that used the stale units would skip some."""
    for number in range(5):
        broker.write_unit("orders", 0, Written(broker.end + 150 * number, 150, 10 + number, 0), {})
    with attach(broker.root, tmp_path / "state") as attached:
        attached.wait_for_watermark(broker.end)
        broker.append("orders", bytes(800), queue_id=1)  # past the positions of the stale units
        attached.wait_for_watermark(broker.end)
        assert attached.pull("orders", offset=5)["max_offset"] == 10


def test_expired_messages_are_410_and_lose_nothing_else(broker: BuiltStore, attached: Attached) -> None:
    """Log and queue files are removed while they are read: 410 has the next offsets, and a consumer loses nothing."""
    for number in range(10, 500):
        broker.append("orders", f"m{number}".encode() + bytes(500))
    attached.wait_for_watermark(broker.end)
    log_files = sorted((broker.root / "commitlog").iterdir())
    queue_files = sorted((broker.root / "consumequeue" / "orders" / "0").iterdir())
    assert len(log_files) > 3
    offset, seen = 0, []
    while offset < 500:
        response = attached.client.get(f"/v1/topics/orders/queues/0/messages?offset={offset}&max_messages=7")
        assert response.status_code in (200, 410), response.text
        answer = response.json()
        if response.status_code == 410:
            assert answer["min_offset"] > offset
            offset = answer["min_offset"]
            continue
        assert [message["queue_offset"] for message in answer["messages"]] == list(range(offset, answer["next_offset"]))
        seen += [message["queue_offset"] for message in answer["messages"]]
        offset = answer["next_offset"]
        if len(log_files) > 2 and len(seen) > 14:
            log_files.pop(0).unlink()
            if len(queue_files) > 4:
                queue_files.pop(0).unlink()
    assert seen[-1] == 499
    assert len(seen) < 500
    minimum = attached.get("/v1/topics/orders/queues/0")["min_offset"]
    assert attached.pull("orders", offset=minimum, max_messages=1)["messages"][0]["queue_offset"] == minimum


def test_a_recreated_topic_begins_at_zero(broker: BuiltStore, attached: Attached) -> None:
    """A broker numbers from 0 again after a topic was deleted."""
    for number in range(10, 200):
        broker.append("orders", f"old{number}".encode())
    attached.wait_for_watermark(broker.end)
    assert attached.pull("orders", offset=150)["max_offset"] == 200
    shutil.rmtree(broker.root / "consumequeue" / "orders")
    broker.next["orders", 0] = 0
    for number in range(3):
        broker.append("orders", f"new{number}".encode())
    attached.wait_for_watermark(broker.end)
    assert attached.bodies("orders") == ["new0", "new1", "new2"]
    assert attached.pull("orders")["max_offset"] == 3


def test_a_restarted_follower_continues_at_the_brokers_end(broker: BuiltStore, tmp_path: Path) -> None:
    """The next follower starts at the broker's end, in its own term."""
    state = tmp_path / "state"
    with attach(broker.root, state) as attached:
        attached.wait_for_watermark(broker.end)
        term = attached.get("/v1/watermark")["watermark"]["term"]
    for number in range(10, 20):
        broker.append("orders", f"m{number}".encode())
    with attach(broker.root, state) as attached:
        attached.wait_for_watermark(broker.end)
        assert attached.get("/v1/watermark")["watermark"]["term"] == term + 1
        assert attached.bodies("orders") == [f"m{number}" for number in range(20)]


def test_an_empty_store_is_followed_from_its_first_message(tmp_path: Path) -> None:
    """Tidemark is attached before the broker has written anything."""
    store = BuiltStore(tmp_path / "store", marked=False)
    with attach(store.root, tmp_path / "state") as attached:
        assert attached.watermark() == 0
        store.topic("orders")
        store.append("orders", b"first")
        attached.wait_for_watermark(store.end)
        assert attached.bodies("orders") == ["first"]
