from __future__ import annotations

from typing import Any

import pytest

from tests.builders import STORE_HOST
from tests.built_store import BuiltStore
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import ServedApp

SEARCH = "/v1/topics/orders/messages"


def id_of(physical_offset: int) -> str:
    """Return RocketMQ's offset message id: address, port and physical offset of the record, in hex."""
    return (STORE_HOST + physical_offset.to_bytes(8, "big")).hex().upper()


def bodies(service: ServedApp, path: str, **params: Any) -> list[str]:
    answer = service.get(path, params={"body_encoding": "utf8", **params})
    assert answer.status_code == 200, answer.text
    return [message["body"] for message in answer.json()["messages"]]


def test_a_message_is_found_by_its_offset_and_by_its_id(service: ServedApp, built: BuiltStore) -> None:
    record = built.append("orders", b"last", queue_id=1)
    built.publish()
    assert bodies(service, f"/v1/messages/at/{record.physical_offset}") == ["last"]
    assert bodies(service, f"/v1/messages/{id_of(record.physical_offset)}") == ["last"]


def test_an_id_with_an_index_is_one_message_of_an_inner_batch(service: ServedApp, built: BuiltStore) -> None:
    batch = id_of(built.append_batch("batches", [(b"x", {}, 0), (b"y", {}, 0)]).physical_offset)
    built.publish()
    assert bodies(service, f"/v1/messages/{batch}") == ["x", "y"]
    assert bodies(service, f"/v1/messages/{batch}-1") == ["y"]
    assert service.get(f"/v1/messages/{batch}-2").status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/v1/messages/at/7", 404, "NOT_FOUND"),
        ("/v1/messages/xyz", 422, "ARGUMENT_ILLEGAL"),
        (f"/v1/messages/{'F' * 32}", 422, "ARGUMENT_ILLEGAL"),
        ("/v1/messages/at/-1", 422, "ARGUMENT_ILLEGAL"),
        (f"{SEARCH}?key=a&unique_key=b", 422, "ARGUMENT_ILLEGAL"),
        (f"{SEARCH}?cursor=nonsense", 422, "ARGUMENT_ILLEGAL"),
        ("/v1/topics/nothing/messages", 404, "TOPIC_NOT_FOUND"),
    ],
)
def test_a_failed_lookup_returns_a_reason(service: ServedApp, path: str, status: int, reason: str) -> None:
    answer = service.get(path)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)


def test_a_lookup_waits_for_a_record_that_is_not_visible_yet(service: ServedApp, built: BuiltStore) -> None:
    path = f"/v1/messages/at/{built.append('orders', b'soon').physical_offset}"
    answer = service.get(path)
    assert (answer.status_code, answer.json()["reason"]) == (404, "NOT_YET_VISIBLE")
    params = {"wait_ms": 30_000, "body_encoding": "utf8"}
    answer = service.ask_and_meanwhile(built.publish, "GET", path, params=params)
    assert [message["body"] for message in answer.json()["messages"]] == ["soon"]


def test_a_key_finds_its_messages_and_a_unique_key_finds_one(service: ServedApp) -> None:
    assert bodies(service, SEARCH, key="k3") == ["m3"]
    assert bodies(service, SEARCH, key="all") == [f"m{n}" for n in range(MESSAGES)]
    assert bodies(service, SEARCH, unique_key="u4") == ["m4"]
    assert bodies(service, SEARCH, key="u4x") == []


@pytest.mark.parametrize("params", [{"key": "all"}, {}])
def test_pages_of_a_search_follow_each_other_without_a_gap(service: ServedApp, params: dict[str, str]) -> None:
    read: list[int] = []
    cursor: dict[str, str] = {}
    for _ in range(MESSAGES + 1):
        page = service.get(SEARCH, params={"limit": "4", **params, **cursor}).json()
        read += [message["queue_offset"] for message in page["messages"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert read == list(range(MESSAGES))


def test_a_cursor_of_another_search_is_refused(service: ServedApp) -> None:
    cursor = service.get(SEARCH, params={"key": "all", "limit": 2}).json()["next_cursor"]
    assert service.get(SEARCH, params={"key": "k1", "cursor": cursor}).status_code == 422


def test_a_search_by_time_includes_both_ends(service: ServedApp, built: BuiltStore) -> None:
    first_ms = built.clock - MESSAGES
    assert bodies(service, SEARCH, **{"from": first_ms + 1, "to": first_ms + 3}) == ["m1", "m2", "m3"]
