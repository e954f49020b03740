from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from services.indexer.query.remoting.lookup_requests import LookupRequests
from tests.built_store import BuiltStore, Written, java_hash
from tests.unit.query.remoting.desk import Desk
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import ServedApp
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.codes import ResponseCode

_FOR_EVER_MS = (1 << 63) - 1


@pytest.fixture
def desk(service: ServedApp) -> Desk:
    return Desk(service, LookupRequests(service.state).handlers())


def by_key(desk: Desk, key: str, **changed: object) -> Frame:
    fields = {"topic": "orders", "key": key, "maxNum": 32, "beginTimestamp": 0, "endTimestamp": _FOR_EVER_MS}
    return desk.ask(RequestCode.QUERY_MESSAGE, {**fields, **changed})


def record(built: BuiltStore, physical_offset: int) -> bytes:
    log = (built.root / "commitlog" / f"{0:020d}").read_bytes()
    (size,) = struct.unpack_from(">i", log, physical_offset)
    return log[physical_offset : physical_offset + size]


def offsets_of(body: bytes | memoryview | bytearray) -> list[int]:
    """Return the queue offsets of consecutive records."""
    found, at, data = [], 0, bytes(body)
    while at < len(data):
        found.append(int.from_bytes(data[at + 20 : at + 28], "big"))
        at += int.from_bytes(data[at : at + 4], "big")
    return found


def test_messages_are_found_by_each_of_their_keys(desk: Desk, built: BuiltStore) -> None:
    answer = by_key(desk, "k1")
    assert (answer.code, offsets_of(answer.body)) == (ResponseCode.SUCCESS, [1])
    assert bytes(answer.body) == record(built, record_places(built)[1])
    assert offsets_of(by_key(desk, "all").body) == list(range(MESSAGES))


def record_places(built: BuiltStore) -> list[int]:
    log, places, at = (built.root / "commitlog" / f"{0:020d}").read_bytes(), [], 0
    while at < built.end:
        places.append(at)
        at += int.from_bytes(log[at : at + 4], "big")
    return places


def test_a_unique_key_is_found_only_as_a_unique_key(desk: Desk) -> None:
    unique = {"_UNIQUE_KEY_QUERY": "true"}
    assert offsets_of(by_key(desk, "u2", **unique).body) == [2]
    assert by_key(desk, "u2").code == ResponseCode.QUERY_NOT_FOUND
    assert by_key(desk, "k2", **unique).code == ResponseCode.QUERY_NOT_FOUND


def test_at_most_the_asked_number_of_messages_is_returned_the_newest(desk: Desk) -> None:
    assert offsets_of(by_key(desk, "all", maxNum=2).body) == [MESSAGES - 2, MESSAGES - 1]
    assert len(offsets_of(by_key(desk, "all", maxNum=0).body)) == 1


def test_a_key_that_no_message_has_is_not_found(desk: Desk) -> None:
    answer = by_key(desk, "nobody")
    assert (answer.code, bytes(answer.body)) == (ResponseCode.QUERY_NOT_FOUND, b"")
    assert int(answer.fields["indexLastUpdateTimestamp"]) > 0  # Java reads both in any answer
    assert int(answer.fields["indexLastUpdatePhyoffset"]) > 0


def test_an_unknown_topic_is_refused(desk: Desk) -> None:
    assert by_key(desk, "k1", topic="nothing").code == ResponseCode.TOPIC_NOT_EXIST


def colliding(folder: Path) -> tuple[BuiltStore, Written]:
    """Return topics `Aa` and `BB`, each with a message with the key k: the two entries have the same hash."""
    assert java_hash("Aa#k") == java_hash("BB#k")
    store = BuiltStore(folder)
    for topic in ("Aa", "BB"):
        store.topic(topic)
        written = store.append(topic, b"of " + topic.encode(), {"KEYS": "k"})
    store.publish()
    return store, written


def test_messages_of_another_topic_with_the_same_hash_are_not_returned(tmp_path: Path) -> None:
    store, last = colliding(tmp_path)
    with ServedApp(store, index_slots=store.slots, index_entries=store.entries) as service:
        desk = Desk(service, LookupRequests(service.state).handlers())
        assert bytes(by_key(desk, "k", topic="BB").body) == record(store, last.physical_offset)
        assert bytes(by_key(desk, "k", topic="Aa").body) == record(store, 0)


def test_times_are_store_times(tmp_path: Path) -> None:
    store = BuiltStore(tmp_path)
    store.topic("orders")
    for at_ms in (10_000, 20_000, 30_000):
        store.append("orders", entries={"KEYS": "k"}, at_ms=at_ms)
    store.publish()
    with ServedApp(store, index_slots=store.slots, index_entries=store.entries) as service:
        desk = Desk(service, LookupRequests(service.state).handlers())
        answer = by_key(desk, "k", beginTimestamp=15_000, endTimestamp=25_000)
        assert offsets_of(answer.body) == [1]
        assert int(answer.fields["indexLastUpdateTimestamp"]) == 30_000


def test_an_answer_fits_into_a_frame_and_has_the_newest_messages(tmp_path: Path) -> None:
    """Clients close the connection after a frame that is too long, and all their pulls go with it."""
    store = BuiltStore(tmp_path)
    store.topic("orders")
    for size in (1_500, 1_500, 1_500, 6_000):
        store.append("orders", bytes(size), {"KEYS": "all" if size < 6_000 else "large"})
    store.publish()
    settings: dict[str, Any] = {
        "remoting_max_frame_bytes": 8_192,
        "index_slots": store.slots,
        "index_entries": store.entries,
    }
    with ServedApp(store, **settings) as service:
        desk = Desk(service, LookupRequests(service.state).handlers())
        assert offsets_of(by_key(desk, "all").body) == [1, 2]
        assert offsets_of(by_key(desk, "large").body) == [3]  # at least one


def test_a_message_is_found_by_its_physical_offset(desk: Desk, built: BuiltStore) -> None:
    for place in record_places(built):  # the last one is an inner batch
        answer = desk.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": place})
        assert (answer.code, bytes(answer.body)) == (ResponseCode.SUCCESS, record(built, place))


def test_a_place_without_a_visible_message_is_refused(desk: Desk, built: BuiltStore) -> None:
    hidden = built.append("orders")
    for place in (1, hidden.physical_offset, 1 << 40, -1):
        answer = desk.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": place})
        assert (answer.code, bytes(answer.body)) == (ResponseCode.SYSTEM_ERROR, b""), place
        assert answer.remark
