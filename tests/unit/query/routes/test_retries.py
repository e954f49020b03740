from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from services.indexer.query.routes.retries import Found, find_originals, send_back
from services.indexer.query.schema.request_bodies import RetriedMessage, RetryBody
from services.indexer.query.state.writer_client import SentBackMessage, WriterForward
from tests.builders import STORE_HOST
from tests.built_store import BuiltStore
from tests.unit.query.routes.fake_forward import FakeForward
from tidemark.errors import (
    ArgumentIllegalError,
    CorruptMessageError,
    MessageNotFoundError,
    MessageNotYetVisibleError,
    MessageSizeExceededError,
    OffsetTooSmallError,
    StoreError,
    TopicNotFoundError,
    WriterUnreachableError,
)
from tidemark.read.store_reader import StoreReader

MESSAGES = 4


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path, log_file_size=1024)
    store.topic("orders")
    store.topic("batches", batch=True)
    for _ in range(MESSAGES):
        store.append("orders", b"x" * 200)
    store.append_batch("batches", [(b"a", {}, 0), (b"b", {}, 0)])
    store.publish()
    return store


def find(built: BuiltStore, **named: Any) -> Found:
    return find_originals(StoreReader(built.root), [RetriedMessage(**named)])[0]


def at(topic: str, queue_offset: int) -> dict[str, Any]:
    return {"topic": topic, "queue_id": 0, "queue_offset": queue_offset}


def id_of(physical_offset: int) -> str:
    return (STORE_HOST + physical_offset.to_bytes(8, "big")).hex().upper()


def test_a_message_is_found_by_its_offset_and_by_its_id(built: BuiltStore) -> None:
    record = built.append("orders", b"last")
    built.publish()
    expected = SentBackMessage("orders", 0, MESSAGES, record.physical_offset, None)
    assert find(built, **at("orders", MESSAGES)) == find(built, message_id=id_of(record.physical_offset)) == expected


def test_a_message_of_an_inner_batch_has_its_index(built: BuiltStore) -> None:
    record = built.append_batch("batches", [(b"c", {}, 0), (b"d", {}, 0)])
    built.publish()
    expected = SentBackMessage("batches", 0, 3, record.physical_offset, 1)
    assert find(built, **at("batches", 3)) == find(built, message_id=f"{id_of(record.physical_offset)}-1") == expected


def test_the_id_of_a_whole_inner_batch_is_refused(built: BuiltStore) -> None:
    record = built.append_batch("batches", [(b"c", {}, 0), (b"d", {}, 0)])
    built.publish()
    assert isinstance(find(built, message_id=id_of(record.physical_offset)), ArgumentIllegalError)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        (at("orders", MESSAGES), MessageNotFoundError),
        (at("nothing", 0), TopicNotFoundError),
        ({"message_id": "0A1B"}, ArgumentIllegalError),
    ],
)
def test_a_missing_message_returns_a_reason(built: BuiltStore, named: dict[str, Any], reason: type[StoreError]) -> None:
    assert isinstance(find(built, **named), reason)


def test_a_message_that_is_not_visible_yet_can_be_retried_later(built: BuiltStore) -> None:
    built.append("orders")
    built.commit()
    assert isinstance(find(built, **at("orders", MESSAGES)), MessageNotYetVisibleError)


def test_an_offset_deleted_by_retention_is_too_small(built: BuiltStore) -> None:
    (built.root / "commitlog" / f"{0:020d}").unlink()
    assert isinstance(find(built, **at("orders", 0)), OffsetTooSmallError)


def test_a_damaged_message_is_not_sent_back(built: BuiltStore) -> None:
    record = built.append("orders", b"damaged")
    built.publish()
    built.write_log(record.physical_offset + 88, b"D")  # the first byte of the body
    assert isinstance(find(built, **at("orders", MESSAGES)), CorruptMessageError)


PLACES = [SentBackMessage("orders", 0, offset, 100 * offset, None) for offset in (1, 2)]


def send(forward: FakeForward, *found: Found) -> list[dict[str, Any]]:
    body = RetryBody(messages=[RetriedMessage(**at("orders", number)) for number in range(len(found))])
    return asyncio.run(send_back(cast(WriterForward, forward), "g", body, found, authorization=None))


def test_each_message_has_a_result_of_its_own_in_the_order_of_the_request() -> None:
    forward = FakeForward()
    forward.refusals[1] = MessageSizeExceededError("too large")
    refused, unknown, stored = send(forward, PLACES[0], MessageNotFoundError("none"), PLACES[1])
    assert (refused["sent_back"], refused["problem"]["reason"]) == (None, "MESSAGE_SIZE_EXCEEDED")
    assert (unknown["sent_back"], unknown["problem"]["reason"]) == (None, "NOT_FOUND")
    assert (stored["problem"], stored["sent_back"], stored["queue_offset"]) == (None, {"topic": "%RETRY%g"}, 2)
    assert forward.sent_back == [PLACES[1]]


def test_an_unreachable_writer_fails_the_request() -> None:
    forward = FakeForward()
    forward.failure = WriterUnreachableError("gone")
    with pytest.raises(WriterUnreachableError):
        send(forward, *PLACES, MessageNotFoundError("none"))


def test_a_writer_lost_midway_fails_only_the_remaining_messages() -> None:
    forward = FakeForward()
    forward.refusals[2] = WriterUnreachableError("gone")
    stored, failed = send(forward, *PLACES)
    assert stored["sent_back"] is not None
    assert failed["problem"]["reason"] == "WRITER_UNREACHABLE"
