"""Followed answers: forms, resumption, ends, faults and limits, over real HTTP."""

from __future__ import annotations

import io
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.built_store import BuiltStore
from tests.integration.query.following import EVENTS, Event, events_of, following, lines_of
from tests.query_server import serve_query
from tidemark.format.record import BLANK_SIZE, Record, decode_record, encode_blank

pytestmark = pytest.mark.integration
QUEUE = "/v1/topics/orders/queues/0/messages"
ALL = "/v1/pull"
ARROW, RECORDS = "application/vnd.apache.arrow.stream", "application/octet-stream"
_BODY_AT = 88  # of a record with IPv4 hosts
TEXT = {"body_encoding": "utf8"}


def append(built: BuiltStore, *numbers: int, queue_id: int = 0) -> None:
    for number in numbers:
        properties = {"TAGS": "AB"[number % 2], "KEYS": f"k{number}"}
        built.append("orders", f"m{number}".encode(), properties, queue_id=queue_id)
    built.publish()


def later(function: Callable[[], Any], delay_s: float = 0.3) -> None:
    threading.Timer(delay_s, function).start()


def records_in(stored: bytes) -> Iterator[Record]:
    while stored:
        size = int.from_bytes(stored[:4], "big")
        yield decode_record(stored[:size])
        stored = stored[size:]


def metric(client: httpx.Client, name: str) -> float:
    (line,) = [line for line in client.get("/metrics").text.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


# -- contents ---------------------------------------------------------------------------------------------------------


def test_stored_messages_come_first_and_new_ones_as_they_become_visible(
    built: BuiltStore, client: httpx.Client
) -> None:
    with following(client, QUEUE, offset=8, **TEXT) as answer:
        lines = lines_of(answer)
        assert [next(lines)["body"] for _ in range(2)] == ["m8", "m9"]
        append(built, 10)
        line = next(lines)
        assert [line[name] for name in ("topic", "queue_id", "queue_offset", "body")] == ["orders", 0, 10, "m10"]
        append(built, 11, 12)
        assert [next(lines)["queue_offset"] for _ in range(2)] == [11, 12]


def test_a_line_is_the_one_of_a_pull_with_its_queue_in_front(client: httpx.Client) -> None:
    pulled = client.get(QUEUE, params=TEXT, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    with following(client, QUEUE, max_messages=10, **TEXT) as answer:
        followed = list(answer.iter_lines())
    assert [line.replace('{"topic":"orders","queue_id":0,', "{", 1) for line in followed[:-1]] == pulled


def test_latest_begins_with_the_next_message(built: BuiltStore, client: httpx.Client) -> None:
    with following(client, QUEUE, offset="latest", **TEXT) as answer:
        append(built, 10)
        assert next(lines_of(answer))["body"] == "m10"


def test_tags_select_and_the_position_moves_past_the_others(built: BuiltStore, client: httpx.Client) -> None:
    with following(client, QUEUE, tag="B", accept=EVENTS, heartbeat_ms=100) as answer:
        events = events_of(answer)
        assert [next(events).data["queue_offset"] for _ in range(5)] == [1, 3, 5, 7, 9]  # type: ignore[index]
        append(built, 10)
        assert next(event for event in events if event.id == "orders:0:11").data is None


def test_bodies_have_the_requested_encoding(client: httpx.Client) -> None:
    for encoding, body in (("base64", "bTA="), ("utf8", "m0"), ("auto", "m0")):
        with following(client, QUEUE, max_messages=1, body_encoding=encoding) as answer:
            assert next(lines_of(answer))["body"] == body


def test_arrow_has_a_batch_for_each_page_and_its_queue(built: BuiltStore, client: httpx.Client) -> None:
    later(lambda: append(built, 10, queue_id=1))
    with following(client, ALL, accept=ARROW, topic="orders", max_messages=11) as answer:
        table = pa.ipc.open_stream(io.BytesIO(answer.read())).read_all()
    assert table["queue_id"].to_pylist() == [0] * 10 + [1]
    assert table["body"].to_pylist() == [f"m{number}".encode() for number in range(11)]
    pulled = client.get(QUEUE, headers={"Accept": ARROW}).content
    assert pa.ipc.open_stream(pulled).read_all().schema.remove_metadata() == pa.schema(list(table.schema)[2:])


def test_records_are_those_of_the_log_with_blank_ones_as_heartbeats(built: BuiltStore, client: httpx.Client) -> None:
    later(lambda: append(built, 10), 0.5)
    with following(client, QUEUE, accept=RECORDS, max_messages=11, heartbeat_ms=100) as answer:
        content = answer.read()
    heartbeat = encode_blank(BLANK_SIZE)
    assert heartbeat in content
    stored = client.get(QUEUE, headers={"Accept": RECORDS}).content
    assert content.replace(heartbeat, b"") == stored
    assert [record.body for record in records_in(stored)] == [f"m{number}".encode() for number in range(11)]


def test_several_queues_come_in_one_answer(built: BuiltStore, client: httpx.Client) -> None:
    with following(client, ALL, queue=["orders:0:9", "batches:0", "orders:1"], **TEXT) as answer:
        lines = lines_of(answer)
        assert [(line["topic"], line["body"]) for line in itertools.islice(lines, 4)] == [
            ("orders", "m9"), ("batches", "b0"), ("batches", "b1"), ("batches", "b2"),
        ]  # fmt: skip
        append(built, 10, queue_id=1)
        line = next(lines)
        assert (line["queue_id"], line["queue_offset"], line["body"]) == (1, 0, "m10")


def test_a_request_with_a_body_follows_too(built: BuiltStore, client: httpx.Client) -> None:
    body = {"queues": [{"topic": "orders", "queue_id": 0, "offset": 9}], "follow": True, "max_messages": 2, **TEXT}
    later(lambda: append(built, 10))
    with client.stream("POST", ALL, json=body) as answer:
        assert [line.get("body") for line in lines_of(answer)] == ["m9", "m10", None]


# -- resumption -------------------------------------------------------------------------------------------------------


def test_each_event_is_a_place_to_resume_from(built: BuiltStore, client: httpx.Client) -> None:
    """From the id of any event on, the rest comes once, in order, with events of several queues between each other."""
    append(built, *range(10, 14), queue_id=1)
    with following(client, ALL, accept=EVENTS, topic="orders", max_messages=14) as answer:
        events = [event for event in events_of(answer) if event.name == "message"]
    places = [(event.data["queue_id"], event.data["queue_offset"]) for event in events if event.data]
    assert len(places) == 14
    for number, event in enumerate(events[:-1]):
        left = len(events) - number - 1
        with following(
            client, ALL, accept=EVENTS, last_event_id=event.id, topic="orders", offset="latest", max_messages=left
        ) as answer:
            rest = [(found.data["queue_id"], found.data["queue_offset"]) for found in events_of(answer) if found.data
                    and found.name == "message"]  # fmt: skip
        assert rest == places[number + 1 :]


def test_a_reader_that_resumes_after_every_break_gets_each_message_once(
    built: BuiltStore, client: httpx.Client
) -> None:
    found: list[int] = []

    def send() -> None:
        for number in range(10, 60):
            append(built, number)
            time.sleep(0.005)

    sender = threading.Thread(target=send)
    sender.start()
    last: str | None = None
    while len(found) < 60:
        with following(client, QUEUE, accept=EVENTS, last_event_id=last) as answer:
            for event in itertools.islice(events_of(answer), 7):
                if event.data is not None:
                    found.append(event.data["queue_offset"])
                last = event.id
                if len(found) == 60:
                    break
    sender.join()
    assert found == list(range(60))


def test_a_last_event_id_of_other_queues_is_refused(client: httpx.Client) -> None:
    for last in ("orders:1:4", "orders:0:4,orders:1:0", "17", "orders:0:x"):
        refusal = client.get(QUEUE, params={"follow": "true"}, headers={"Last-Event-ID": last})
        assert (refusal.status_code, refusal.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")
        assert refusal.json()["detail"].startswith("header.Last-Event-ID: ")


# -- heartbeats and ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "heartbeat"),
    [("*/*", b"\n"), (EVENTS, b"id: orders:0:10\n\n"), (RECORDS, encode_blank(BLANK_SIZE))],
)
def test_heartbeats_come_while_there_are_no_messages(client: httpx.Client, accept: str, heartbeat: bytes) -> None:
    with following(client, QUEUE, accept=accept, offset=10, max_seconds=1, heartbeat_ms=200) as answer:
        content = answer.read()
    assert 3 <= content.count(heartbeat) <= 6


def test_an_answer_ends_after_its_time_with_its_position(client: httpx.Client) -> None:
    began = time.monotonic()
    with following(client, QUEUE, max_seconds=1) as answer:
        *_, end = lines_of(answer)
    assert end == {"event": "end", "reason": "MAX_SECONDS", "positions": "orders:0:10"}
    assert 1 <= time.monotonic() - began < 10
    with following(client, QUEUE, accept=EVENTS, max_seconds=1, offset=10) as answer:
        *_, last = events_of(answer)
    assert last == Event("end", "orders:0:10", {"reason": "MAX_SECONDS", "positions": "orders:0:10"})


def test_an_answer_ends_after_its_messages(client: httpx.Client) -> None:
    with following(client, ALL, topic="orders", queue="batches:0", max_messages=11, **TEXT) as answer:
        *lines, end = lines_of(answer)
    assert [line["body"] for line in lines] == [*(f"m{number}" for number in range(10)), "b0"]
    assert end == {
        "event": "end", "reason": "MAX_MESSAGES", "positions": "orders:0:10,orders:1:0,batches:0:1",
    }  # fmt: skip


def test_the_settings_limit_time_and_heartbeat(built: BuiltStore) -> None:
    with serve_query(built.root, query_max_follow_s=1, query_heartbeat_ms=300) as client:
        with following(client, QUEUE, offset=10, max_seconds=1000, heartbeat_ms=9000) as answer:
            content = answer.read()
        assert content.startswith(b"\n")
        assert b"MAX_SECONDS" in content


def test_a_stop_of_the_service_ends_answers_at_once(built: BuiltStore) -> None:
    found: list[dict[str, Any]] = []
    begun = threading.Event()

    def read(url: httpx.URL) -> None:
        with httpx.Client(base_url=url) as other, following(other, QUEUE) as answer:
            for line in lines_of(answer):
                found.append(line)
                begun.set()

    with serve_query(built.root) as client:
        reader = threading.Thread(target=read, args=(client.base_url,))
        reader.start()
        assert begun.wait(20)
        time.sleep(0.2)
        stopped = time.monotonic()
    reader.join(10)
    assert time.monotonic() - stopped < 8
    assert (len(found), found[-1]["reason"]) == (11, "STOPPING")


def test_a_client_that_leaves_is_followed_no_more(client: httpx.Client) -> None:
    with following(client, QUEUE, max_seconds=60) as answer:
        lines = lines_of(answer)
        next(lines)
        assert metric(client, "tidemark_query_followers") == 1
    deadline = time.monotonic() + 10
    while metric(client, "tidemark_query_followers") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert metric(client, "tidemark_query_followers") == 0


# -- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "parameters", "accept", "status"),
    [
        ("/v1/topics/absent/queues/0/messages", {}, "*/*", 404),
        ("/v1/topics/orders/queues/9/messages", {}, "*/*", 404),
        (QUEUE, {"offset": 99}, "*/*", 416),
        (QUEUE, {}, "application/json", 406),
        (QUEUE, {"wait_ms": 5}, "*/*", 422),
        (QUEUE, {"max_bytes": 5}, "*/*", 422),
        (QUEUE, {"semantics": "rocketmq"}, "*/*", 422),
        (QUEUE, {"follow": "perhaps"}, "*/*", 422),
        (QUEUE, {"follow": "false", "max_seconds": 5}, "*/*", 422),
        (QUEUE, {"max_seconds": 0}, "*/*", 422),
        (QUEUE, {"heartbeat_ms": 1}, "*/*", 422),
        (ALL, {"queue": ["orders:0", "orders:0:70"]}, "*/*", 422),
        (ALL, {"queue": ["orders:1", "orders:0:70"]}, "*/*", 416),
    ],
)
def test_a_fault_at_the_beginning_has_its_status(
    client: httpx.Client, path: str, parameters: dict[str, Any], accept: str, status: int
) -> None:
    refusal = client.get(path, params={"follow": "true", **parameters}, headers={"Accept": accept})
    assert (refusal.status_code, refusal.headers["content-type"]) == (status, "application/problem+json"), refusal.text


def test_events_need_follow(client: httpx.Client) -> None:
    refusal = client.get(QUEUE, headers={"Accept": EVENTS})
    assert refusal.status_code == 406
    assert "follow=true" in refusal.json()["detail"]


def test_a_topic_that_is_deleted_ends_the_answer_with_the_fault(built: BuiltStore, client: httpx.Client) -> None:
    with following(client, QUEUE, offset=9, **TEXT) as answer:
        lines = lines_of(answer)
        assert next(lines)["body"] == "m9"
        built.delete_topic("orders")
        problem = next(lines)
    assert (problem["event"], problem["reason"], problem["positions"]) == ("problem", "TOPIC_NOT_FOUND", "orders:0:10")


def test_damaged_records_are_reported_between_the_messages(built: BuiltStore, client: httpx.Client) -> None:
    written = built.append("orders", b"damaged", {})
    built.write_log(written.physical_offset + _BODY_AT, b"D")
    append(built, 11)
    with following(client, QUEUE, offset=9, max_messages=2, **TEXT) as answer:
        lines = list(lines_of(answer))
    (skipped,) = [line for line in lines if line.get("event") == "skipped"]
    assert [line["body"] for line in lines if "body" in line] == ["m9", "m11"]
    assert [(one["queue_offset"], one["reason"]) for one in skipped["skipped"]] == [(10, "BODY_CRC")]


def test_followers_count_as_waiting_requests(built: BuiltStore) -> None:
    with (
        serve_query(built.root, query_max_waiting_per_client=2) as client,
        following(client, QUEUE) as one,
        following(client, QUEUE) as two,
    ):
        lines = [one.iter_lines(), two.iter_lines()]
        for each in lines:
            next(each)
        refusal = client.get(QUEUE, params={"follow": "true"})
        assert (refusal.status_code, refusal.json()["reason"]) == (429, "IN_FLIGHT_LIMIT")
        assert "TIDEMARK_QUERY_MAX_WAITING_PER_CLIENT" in refusal.json()["detail"]


def test_a_follower_that_has_read_everything_holds_no_bytes(built: BuiltStore) -> None:
    """With a limit of one byte of unsent answers, any that it still counted would refuse the other request."""
    with serve_query(built.root, query_max_untaken_bytes=1) as client, following(client, QUEUE, **TEXT) as answer:
        lines = lines_of(answer)
        for _ in range(10):
            next(lines)
        append(built, 10)
        assert next(lines)["body"] == "m10"
        assert client.get(QUEUE).status_code == 200


def test_too_many_queues_are_refused(built: BuiltStore) -> None:
    with serve_query(built.root, query_max_follow_queues=1) as client:
        refusal = client.get(ALL, params={"follow": "true", "topic": "orders"})
        assert (refusal.status_code, refusal.json()["limit"]) == (422, 1)
        assert "TIDEMARK_QUERY_MAX_FOLLOW_QUEUES" in refusal.json()["detail"]


# -- many followers ---------------------------------------------------------------------------------------------------


def test_many_followers_get_every_message_in_order(built: BuiltStore, client: httpx.Client) -> None:
    """Readers of one queue and of both, from the start and from the end, while messages arrive as fast as possible."""
    found: dict[int, list[tuple[int, int]]] = {}

    def read(number: int) -> None:
        path, asked = (ALL, {"topic": "orders"}) if number % 2 else (QUEUE, {})
        count = 10 + (200 if number % 2 else 100)
        with following(client, path, accept=EVENTS if number % 3 else "*/*", max_messages=count, **asked) as answer:
            rows = (event.data for event in events_of(answer)) if number % 3 else lines_of(answer)
            found[number] = [(row["queue_id"], row["queue_offset"]) for row in rows if row and "body" in row]

    readers = [threading.Thread(target=read, args=(number,)) for number in range(12)]
    for reader in readers:
        reader.start()
    for number in range(10, 110):
        append(built, number, queue_id=0)
        append(built, number, queue_id=1)
    for reader in readers:
        reader.join(30)
    for number in range(12):
        of_queue = [[offset for queue, offset in found[number] if queue == queue_id] for queue_id in (0, 1)]
        assert of_queue == [list(range(110)), list(range(100)) if number % 2 else []], number
