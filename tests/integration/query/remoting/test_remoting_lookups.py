"""Lookups by key and by physical offset over the remoting protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built_store import BuiltStore, java_hash
from tests.query_server import serve_query_remoting
from tests.remoting_client import RemotingClient
from tidemark.remoting import Frame, RequestCode

from .calls import log_records, stored, topic_of

pytestmark = pytest.mark.integration
FOR_EVER_MS = (1 << 63) - 1


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return topics `Aa` and `BB`, whose keys have the same hashes, with messages of the seconds 0 to 5."""
    assert java_hash("Aa#k") == java_hash("BB#k")
    store = BuiltStore(tmp_path)
    for topic in ("Aa", "BB"):
        store.topic(topic)
        for number in range(6):
            named = {"KEYS": f"k k{number}", "UNIQ_KEY": f"u{number}"}
            store.append(topic, b"%d" % number, named, at_ms=1_000_000 + number * 1_000)
    store.topic("batches", batch=True)
    store.append_batch("batches", [(b"b0", {}, 0), (b"b1", {}, 0)], {"UNIQ_KEY": "batch"})
    store.publish()
    store.append("Aa", b"not visible", {"KEYS": "k hidden"})
    return store


@pytest.fixture
def client(store: BuiltStore) -> Iterator[RemotingClient]:
    with (
        serve_query_remoting(store.root, index_slots=store.slots, index_entries=store.entries) as served,
        served.connect() as client,
    ):
        yield client


def by_key(client: RemotingClient, topic: str, key: str, **changed: object) -> Frame:
    fields = {"topic": topic, "key": key, "maxNum": 32, "beginTimestamp": 0, "endTimestamp": FOR_EVER_MS, **changed}
    return client.call(RequestCode.QUERY_MESSAGE, {name: str(value) for name, value in fields.items()})


def test_messages_are_found_by_key_in_their_own_topic_only(store: BuiltStore, client: RemotingClient) -> None:
    """The other topic's entries have the same hash; messages that are not visible are not found."""
    for topic in ("Aa", "BB"):
        records = stored(store.root, topic)
        answer = by_key(client, topic, "k")
        assert (answer.code, bytes(answer.body)) == (0, b"".join(records[number] for number in range(6)))
        assert bytes(by_key(client, topic, "k4").body) == records[4]
        assert int(answer.fields["indexLastUpdateTimestamp"]) > 1_000_000
        assert int(answer.fields["indexLastUpdatePhyoffset"]) > 0


def test_a_unique_key_is_found_if_the_request_asks_for_one(store: BuiltStore, client: RemotingClient) -> None:
    unique = {"_UNIQUE_KEY_QUERY": "true"}
    assert bytes(by_key(client, "BB", "u3", **unique).body) == stored(store.root, "BB")[3]
    assert by_key(client, "BB", "u3").code == 22
    assert by_key(client, "BB", "k3", **unique).code == 22
    assert bytes(by_key(client, "batches", "batch", **unique).body) == stored(store.root, "batches")[0]


def test_a_lookup_is_limited_by_number_and_time(store: BuiltStore, client: RemotingClient) -> None:
    """Messages with the same hash and of another topic do not count."""
    records = stored(store.root, "Aa")
    for count in (1, 2):
        assert bytes(by_key(client, "Aa", "k", maxNum=count).body) == b"".join(records[n] for n in range(6 - count, 6))
    window = {"beginTimestamp": 1_001_500, "endTimestamp": 1_003_500}
    records = stored(store.root, "BB")
    assert bytes(by_key(client, "BB", "k", **window).body) == records[2] + records[3]


@pytest.mark.parametrize(("topic", "key", "code"), [("Aa", "nobody", 22), ("Aa", "hidden", 22), ("nothing", "k", 17)])
def test_a_lookup_without_a_match(client: RemotingClient, topic: str, key: str, code: int) -> None:
    answer = by_key(client, topic, key)
    assert (answer.code, bytes(answer.body)) == (code, b"")
    assert answer.remark


def test_every_message_is_found_by_its_physical_offset(store: BuiltStore, client: RemotingClient) -> None:
    places = list(log_records(store.root))
    assert [topic_of(record) for _, record in places[-2:]] == ["batches", "Aa"]
    for place, record in places[:-1]:
        answer = client.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(place)})
        assert (answer.code, bytes(answer.body)) == (0, record)


def test_a_place_without_a_visible_message_is_refused(store: BuiltStore, client: RemotingClient) -> None:
    (hidden, _) = list(log_records(store.root))[-1]
    for place in (1, hidden, store.end, 1 << 50, -1):
        answer = client.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(place)})
        assert (answer.code, bytes(answer.body)) == (1, b""), place
        assert answer.remark


def test_messages_of_a_deleted_topic_are_not_found(store: BuiltStore, client: RemotingClient) -> None:
    (first, _) = next(log_records(store.root))
    assert client.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(first)}).code == 0
    store.delete_topic("Aa")
    assert by_key(client, "Aa", "k").code == 17
    assert client.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(first)}).code == 1
    store.topic("Aa")
    assert by_key(client, "Aa", "k").code in (17, 22)
    assert by_key(client, "BB", "k").code == 0
