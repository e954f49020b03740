"""Lookups of many keys or queue offsets by one request, compared with single lookups."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.client import Query
from tidemark.errors import ArgumentIllegalError

pytestmark = pytest.mark.integration
LOOKUP = "/v1/topics/{topic}/messages:lookup"
COUNT = 40
COMMON = ("store", "topic", "watermark", "committed_offset", "lag_bytes", "limit")


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return `orders` with 40 messages in two queues, keys k0 to k3 in turn, and `batches` with three inner batches."""
    store = BuiltStore(tmp_path / "store", log_file_size=4096)
    store.topic("orders", queues=2)
    store.topic("batches", batch=True)
    for number in range(COUNT):
        named = {"KEYS": f"k{number % 4} all", "UNIQ_KEY": f"u{number}", "TAGS": "A"}
        store.append("orders", b"m%d" % number, named, queue_id=number % 2)
    for number in range(3):
        store.append_batch("batches", [(b"b%d.%d" % (number, i), {}, 0) for i in range(3)])
    store.publish()
    return store


@pytest.fixture
def client(store: BuiltStore) -> Iterator[httpx.Client]:
    with serve_query(store.root, index_slots=store.slots, index_entries=store.entries) as client:
        yield client


def look_up(client: httpx.Client, topic: str = "orders", /, **body: Any) -> Any:
    answer = client.post(LOOKUP.format(topic=topic), json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["looked_at"] == len(found["results"])
    return found


def places(*offsets: int, queue_id: int = 0) -> list[dict[str, int]]:
    return [{"queue_id": queue_id, "offset": offset} for offset in offsets]


def bodies(found: Any) -> list[list[str]]:
    return [[message["body"] for message in result["messages"]] for result in found["results"]]


def reasons(found: Any) -> list[str | None]:
    return [result["reason"] for result in found["results"]]


@pytest.mark.parametrize(
    ("one", "many", "names"),
    [("key", "keys", ["k3", "none", "all", "k0", "k3"]), ("unique_key", "unique_keys", ["u7", "u0", "x"])],
)
@pytest.mark.parametrize("options", [{}, {"limit": 3}, {"body_encoding": "base64"}, {"from": 0, "to": 1}])
def test_each_key_has_the_result_of_its_single_lookup(
    client: httpx.Client, one: str, many: str, names: list[str], options: dict[str, Any]
) -> None:
    """Messages, cursor and limit are the same, and a cursor leads to the same next page."""
    found = look_up(client, **{many: names}, **options)
    assert len(found["results"]) == len(names)
    for name, result in zip(names, found["results"], strict=True):
        single = client.get("/v1/topics/orders/messages", params={one: name, **options}).json()
        for field in ("messages", "next_cursor", "skipped"):
            assert result[field] == single[field]
        assert result["reason"] is None
        assert [found[field] for field in COMMON] == [single[field] for field in COMMON]
        if result["next_cursor"]:
            following = {one: name, **options, "cursor": result["next_cursor"]}
            assert client.get("/v1/topics/orders/messages", params=following).status_code == 200


def test_each_offset_has_the_message_of_a_pull_in_the_requests_order(client: httpx.Client) -> None:
    """Near and far offsets, of both queues, backwards and repeated."""
    asked = [*places(19, 3, 4, 18, 0, 3), *places(5, queue_id=1)]
    found = look_up(client, offsets=asked)
    assert bodies(found) == [["m38"], ["m6"], ["m8"], ["m36"], ["m0"], ["m6"], ["m11"]]
    for place, result in zip(asked, found["results"], strict=True):
        path = f"/v1/topics/orders/queues/{place['queue_id']}/messages"
        (message,) = client.get(path, params={"offset": place["offset"], "max_messages": 1}).json()["messages"]
        assert result["messages"] == [{"queue_id": place["queue_id"], **message}]
        assert (result["reason"], result["next_cursor"], result["skipped"]) == (None, None, [])


def test_an_offset_within_an_inner_batch_has_this_message_only(client: httpx.Client) -> None:
    assert bodies(look_up(client, "batches", offsets=places(7, 1, 3))) == [["b2.1"], ["b0.1"], ["b1.0"]]


def test_an_offset_above_the_end_has_a_reason(store: BuiltStore, client: httpx.Client) -> None:
    """An offset that may be committed already is not visible yet."""
    assert reasons(look_up(client, offsets=places(19, 20, 21))) == [None, "OFFSET_OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE"]
    assert reasons(look_up(client, offsets=places(0, queue_id=7))) == ["QUEUE_ID_ILLEGAL"]


def test_a_damaged_record_has_a_reason_and_its_neighbours_are_returned(store: BuiltStore, client: httpx.Client) -> None:
    (message,) = look_up(client, offsets=places(10))["results"][0]["messages"]
    log = (store.root / "commitlog" / f"{message['physical_offset'] // 4096 * 4096:020d}").read_bytes()
    at = log.index(b"m20", message["physical_offset"] % 4096)
    store.write_log(message["physical_offset"] // 4096 * 4096 + at, b"X20")
    found = look_up(client, offsets=places(11, 10, 9))
    assert bodies(found) == [["m22"], [], ["m18"]]
    assert reasons(found) == [None, "CORRUPT_MESSAGE", None]
    damage = {"queue_offset": 10, "physical_offset": message["physical_offset"], "message_count": 1}
    assert found["results"][1]["skipped"] == [{**damage, "reason": "BODY_CRC"}]
    by_key = look_up(client, unique_keys=["u20", "u22"])
    assert bodies(by_key) == [[], ["m22"]]
    assert [skip["reason"] for skip in by_key["results"][0]["skipped"]] == ["BODY_CRC"]


def test_an_expired_offset_has_a_reason_and_an_expired_key_no_message(store: BuiltStore, client: httpx.Client) -> None:
    (store.root / "commitlog" / f"{0:020d}").unlink()
    found = look_up(client, offsets=places(0, 19))
    assert (reasons(found), bodies(found)) == (["OFFSET_TOO_SMALL", None], [[], ["m38"]])
    by_key = look_up(client, unique_keys=["u0", "u38"])
    assert (reasons(by_key), bodies(by_key)) == ([None, None], [[], ["m38"]])


def test_a_topic_created_again_has_none_of_the_deleted_messages(store: BuiltStore, client: httpx.Client) -> None:
    store.delete_topic("orders")
    assert client.post(LOOKUP.format(topic="orders"), json={"keys": ["k0"]}).json()["reason"] == "TOPIC_NOT_FOUND"
    store.topic("orders", queues=2)
    store.append("orders", b"new", {"KEYS": "k0"})
    store.publish()
    found = look_up(client, offsets=places(19, 20))
    assert (reasons(found), bodies(found)) == (["OFFSET_TOO_SMALL", None], [[], ["new"]])
    assert bodies(look_up(client, keys=["k0", "k1"])) == [["new"], []]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({}, "exactly one of keys, unique_keys and offsets"),
        ({"keys": ["a"], "offsets": places(0)}, "exactly one of keys, unique_keys and offsets"),
        ({"keys": []}, "keys"),
        ({"keys": [""]}, "keys.0"),
        ({"offsets": places(-1)}, "offsets.0.offset"),
        ({"offsets": [{"queue_id": 0, "offset": 1.5}]}, "offsets.0.offset"),
        ({"offsets": places(0), "limit": 2}, "limit: it has no meaning with offsets"),
        ({"offsets": places(0), "from": 2}, "from: it has no meaning with offsets"),
        ({"keys": ["a"], "form": 1}, "from"),
        ({"keys": ["a"], "from": 1 << 70}, "from"),
        ({"keys": ["a"], "limit": 0}, "limit"),
    ],
)
def test_a_wrong_body_is_refused(client: httpx.Client, body: dict[str, Any], what: str) -> None:
    answer = client.post(LOOKUP.format(topic="orders"), json=body)
    assert (answer.status_code, answer.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")
    assert what in answer.json()["detail"]


def test_another_store_an_unknown_topic_and_query_parameters_are_refused(client: httpx.Client) -> None:
    keys = {"keys": ["k0"]}
    assert client.post(LOOKUP.format(topic="orders"), json={**keys, "store": "other"}).status_code == 404
    assert client.post(LOOKUP.format(topic="absent"), json=keys).status_code == 404
    assert client.post(LOOKUP.format(topic="orders"), json=keys, params={"limit": 1}).status_code == 422
    assert client.get(LOOKUP.format(topic="orders")).status_code == 405


@pytest.mark.parametrize("asked", [{"keys": ["a", "b", "c"]}, {"unique_keys": ["a"] * 3}, {"offsets": places(0, 1, 2)}])
def test_more_than_the_limit_is_refused_with_the_remedy(store: BuiltStore, asked: dict[str, Any]) -> None:
    with serve_query(store.root, query_max_lookups=2) as client:
        answer = client.post(LOOKUP.format(topic="orders"), json=asked)
        (name,) = asked
        assert (answer.status_code, answer.json()["limit"], answer.json()["argument"]) == (422, 2, name)
        expected = (
            f"{name}: 3 in one request, at most 2 (TIDEMARK_QUERY_MAX_LOOKUPS): send the others in further requests"
        )
        assert answer.json()["detail"] == expected
        assert look_up(client, **{name: asked[name][:2]})["looked_at"] == 2


@pytest.mark.parametrize("asked", [{"keys": ["all", "k0", "k1"]}, {"offsets": places(3, 1, 7, 5, 9, 9, 0)}])
def test_a_full_answer_says_how_far_it_got(
    store: BuiltStore, client: httpx.Client, asked: dict[str, list[Any]]
) -> None:
    """A client that continues with the others gets every result."""
    (name,) = asked
    whole = look_up(client, **asked, **({} if name == "offsets" else {"limit": 4}))
    limits = {"query_max_messages": 5, "query_default_messages": 5}
    with serve_query(store.root, index_slots=store.slots, index_entries=store.entries, **limits) as small:
        results: list[Any] = []
        requests = 0
        while len(results) < len(asked[name]):
            rest = {name: asked[name][len(results) :]}
            results += look_up(small, **rest, **({} if name == "offsets" else {"limit": 4}))["results"]
            requests += 1
    assert results == whole["results"]
    assert requests == 2


@pytest.mark.parametrize("name", ["keys", "offsets"])
def test_decompressed_bodies_beyond_the_limit_end_the_answer(tmp_path: Path, name: str) -> None:
    """80 MiB of bodies in 80 kB of log; repeated offsets count as often as they are named."""
    store = BuiltStore(tmp_path / "store", log_file_size=1 << 20)
    store.topic("orders")
    body = zlib.compress(bytes(16 << 20))
    for number in range(5):
        store.append("orders", body, {"KEYS": f"k{number}"}, sys_flag=0x301)
    store.publish()
    named: list[Any] = [f"k{number}" for number in range(5)] if name == "keys" else places(0, 0, 1, 0, 2, 1)
    with serve_query(store.root, index_slots=store.slots, index_entries=store.entries) as client:
        found = look_up(client, **{name: named})
        assert 1 <= found["looked_at"] <= 4
        assert all(len(message["body"]) >= 16 << 20 for result in found["results"] for message in result["messages"])
        rest = look_up(client, **{name: named[found["looked_at"] :]})
        assert found["looked_at"] + rest["looked_at"] == len(named)


def test_the_python_client_looks_up_many_messages(client: httpx.Client) -> None:
    with Query(str(client.base_url)) as query:
        by_key = query.lookup("orders", keys=["k1", "none"], limit=2)
        assert [message["body"] for message in by_key["results"][0]["messages"]] == ["m1", "m5"]
        assert by_key["results"][1]["messages"] == []
        by_place = query.lookup("orders", offsets=[(1, 0), {"queue_id": 0, "offset": 99}])
        assert by_place["results"][0]["messages"] == by_key["results"][0]["messages"][:1]
        assert by_place["results"][1]["reason"] == "OFFSET_OUT_OF_RANGE"
        by_unique_key = query.lookup("orders", unique_keys=iter(["u1"]), body_encoding="base64")  # type: ignore[arg-type]
        assert by_unique_key["results"][0]["messages"][0]["queue_offset"] == 0
        with pytest.raises(ArgumentIllegalError, match="exactly one of"):
            query.lookup("orders")
        with pytest.raises(TypeError, match="expected a list"):
            query.lookup("orders", keys="k1")
