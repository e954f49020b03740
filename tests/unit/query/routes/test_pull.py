from __future__ import annotations

import pytest

from tests.built_store import BuiltStore
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import ServedApp
from tidemark.format.record import decode_record

MESSAGES_PATH = "/v1/topics/orders/queues/0/messages"
OFFSET_PATH = "/v1/topics/orders/queues/0/offset"


def bodies(service: ServedApp, **params: str | int | list[str]) -> list[str]:
    answer = service.get(MESSAGES_PATH, params={"body_encoding": "utf8", **params})
    assert answer.status_code == 200, answer.text
    return [message["body"] for message in answer.json()["messages"]]


def test_pages_follow_each_other_by_next_offset(service: ServedApp) -> None:
    read: list[int] = []
    offset = 0
    while page := service.get(MESSAGES_PATH, params={"offset": offset, "max_messages": 4}).json()["messages"]:
        read += [message["queue_offset"] for message in page]
        offset = read[-1] + 1
    assert read == list(range(MESSAGES))


def test_a_tag_filter_returns_only_messages_with_one_of_the_tags(service: ServedApp) -> None:
    assert bodies(service, tag="B") == ["m1", "m3", "m5"]
    assert bodies(service, tag=["A", "B"]) == bodies(service, tag="A||B") == [f"m{n}" for n in range(MESSAGES)]


def test_the_end_of_the_queue_is_answered_with_the_same_cursor(service: ServedApp) -> None:
    answer = service.get(MESSAGES_PATH, params={"offset": MESSAGES})
    content = answer.json()
    assert (answer.status_code, content["messages"], content["next_offset"]) == (200, [], MESSAGES)


def test_a_message_that_becomes_visible_ends_the_wait(service: ServedApp, built: BuiltStore) -> None:
    def publish_another() -> None:
        built.append("orders", b"new")
        built.publish()

    params = {"offset": "latest", "wait_ms": 30_000, "body_encoding": "utf8"}
    answer = service.ask_and_meanwhile(publish_another, "GET", MESSAGES_PATH, params=params)
    assert [message["body"] for message in answer.json()["messages"]] == ["new"]


def test_an_octet_stream_answer_is_the_stored_records(service: ServedApp, built: BuiltStore) -> None:
    answer = service.get(MESSAGES_PATH, params={"max_messages": 1}, headers={"Accept": "application/octet-stream"})
    log = (built.root / "commitlog" / f"{0:020d}").read_bytes()
    assert answer.content == log[: len(answer.content)]
    assert decode_record(answer.content).body == b"m0"
    assert (answer.headers["Tidemark-Next-Offset"], answer.headers["Vary"]) == ("1", "Accept")


@pytest.mark.parametrize(
    ("path", "params", "headers", "status", "reason"),
    [
        (MESSAGES_PATH, {"offset": MESSAGES + 1}, {}, 416, "OFFSET_OUT_OF_RANGE"),
        (MESSAGES_PATH, {"store": "other"}, {}, 404, "TOPIC_NOT_FOUND"),
        (MESSAGES_PATH, {"ofset": 1}, {}, 422, "ARGUMENT_ILLEGAL"),
        (MESSAGES_PATH, {}, {"Accept": "text/html"}, 406, "NOT_ACCEPTABLE"),
        ("/v1/topics/nothing/queues/0/messages", {}, {}, 404, "TOPIC_NOT_FOUND"),
        ("/v1/topics/orders/queues/2/messages", {}, {}, 404, "QUEUE_ID_ILLEGAL"),
    ],
)
def test_a_failed_pull_returns_a_reason(
    service: ServedApp, path: str, params: dict[str, str], headers: dict[str, str], status: int, reason: str
) -> None:
    answer = service.get(path, params=params, headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)


def test_offset_by_time_is_the_first_at_or_after_or_the_last_at_or_before(
    service: ServedApp, built: BuiltStore
) -> None:
    """Store times are a millisecond apart; the inner batch of the fixture is the last record."""
    first_ms = built.clock - MESSAGES
    params = {"time": first_ms + 2}
    assert service.get(OFFSET_PATH, params=params).json()["offset"] == 2
    assert service.get(OFFSET_PATH, params={**params, "boundary": "upper"}).json()["offset"] == 2
    past_end = service.get(OFFSET_PATH, params={"time": built.clock + 60_000}).json()
    assert (past_end["offset"], past_end["store_timestamp_ms"]) == (MESSAGES, None)
