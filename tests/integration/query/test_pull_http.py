"""Pulls over HTTP: names and statuses of the contract, every form of the response, and waiting."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pyarrow as pa
import pytest

from services.indexer.query.state.read_threads import ReadThreads
from tests.built_store import BuiltStore
from tests.query_server import serve_query

pytestmark = pytest.mark.integration

QUEUE = "/v1/topics/orders/queues/0/messages"
BATCHES = "/v1/topics/batches/queues/0/messages"
ANSWER_NAMES = [  # without wait_ms and skipped
    "store", "topic", "queue_id", "status", "status_text", "requested_offset", "next_offset", "min_offset",
    "max_offset", "watermark", "committed_offset", "lag_bytes", "max_messages", "max_bytes", "wait_ms", "skipped",
    "messages",
]  # fmt: skip
MESSAGE_NAMES = [
    "queue_offset", "physical_offset", "message_id", "offset_msg_id", "store_timestamp_ms", "born_timestamp_ms", "tag",
    "keys", "properties", "flag", "sys_flag", "reconsume_times", "born_host", "store_host", "body_crc", "body",
    "body_encoding",
]  # fmt: skip


def test_the_pull_answer_has_the_names_of_the_contract(built: BuiltStore, client: httpx.Client) -> None:
    """Every name of the contract and its value are checked."""
    answer = client.get(QUEUE, params={"offset": 3, "max_messages": 2, "body_encoding": "utf8"}).json()
    assert list(answer) == ANSWER_NAMES
    assert {name: answer[name] for name in ANSWER_NAMES[:9] if name != "status_text"} == {
        "store": "tidemark-0", "topic": "orders", "queue_id": 0, "status": "FOUND", "requested_offset": 3,
        "next_offset": 5, "min_offset": 0, "max_offset": 10,
    }  # fmt: skip
    assert answer["watermark"] | {"published_ms": 0} == {"term": 0, "physical_offset": built.end, "published_ms": 0}
    assert abs(answer["watermark"]["published_ms"] / 1000 - time.time()) < 60
    assert (answer["committed_offset"], answer["lag_bytes"]) == (built.end, 0)
    assert (answer["max_messages"], answer["max_bytes"], answer["skipped"]) == (2, 1 << 20, [])
    assert [list(message) for message in answer["messages"]] == [MESSAGE_NAMES] * 2
    message = answer["messages"][0]
    assert [message[name] for name in ("queue_offset", "body", "body_encoding", "tag", "keys", "properties")] == [
        3, "m3", "utf8", "B", ["k3"], {},
    ]  # fmt: skip
    assert message["offset_msg_id"] == message["message_id"]
    assert message["store_host"] == "192.168.7.65:10911"


def test_earliest_and_latest_are_resolved_to_offsets(client: httpx.Client) -> None:
    """The default of a pull without an offset is checked too."""
    assert client.get(QUEUE).json()["requested_offset"] == 0
    assert client.get(QUEUE, params={"offset": "earliest"}).json()["requested_offset"] == 0
    latest = client.get(QUEUE, params={"offset": "latest"}).json()
    assert (latest["status"], latest["requested_offset"], latest["next_offset"]) == ("OFFSET_OVERFLOW_ONE", 10, 10)


def test_a_pull_filters_by_tag(client: httpx.Client) -> None:
    """There are one, several, and an expression; inner batches are filtered message by message."""
    for tags, bodies in (
        (["A"], ["m0", "m2"]),
        (["A", "B"], ["m0", "m1"]),
        (["A||B"], ["m0", "m1"]),
        (["*"], ["m0", "m1"]),
    ):
        answer = client.get(QUEUE, params={"offset": 0, "tag": tags, "max_messages": 2, "body_encoding": "utf8"}).json()
        assert [message["body"] for message in answer["messages"]] == bodies
    answer = client.get(BATCHES, params={"tag": "B", "body_encoding": "utf8"}).json()
    assert [(message["body"], message["queue_offset"]) for message in answer["messages"]] == [("b1", 1)]


def test_effective_limits_are_returned(built: BuiltStore) -> None:
    """A value above a maximum is not an error: the response has the effective limit."""
    with serve_query(
        built.root,
        query_max_messages=4,
        query_max_bytes=500,
        query_max_wait_ms=5,
        query_default_messages=3,
        query_default_bytes=400,
    ) as client:
        asked = client.get(QUEUE, params={"max_messages": 9, "max_bytes": 999_999, "wait_ms": 99_999}).json()
        default = client.get(QUEUE).json()
    assert [asked[name] for name in ("max_messages", "max_bytes", "wait_ms")] == [4, 500, 5]
    assert [default[name] for name in ("max_messages", "max_bytes", "wait_ms")] == [3, 400, 0]


@pytest.mark.parametrize(
    ("path", "params", "status", "reason", "facts"),
    [
        (QUEUE, {"offset": 11}, 416, "OFFSET_OUT_OF_RANGE", {"max_offset": 10, "next_offset": 10, "min_offset": 0}),
        ("/v1/topics/nope/queues/0/messages", {}, 404, "TOPIC_NOT_FOUND", {"topic": "nope"}),
        ("/v1/topics/orders/queues/2/messages", {}, 404, "QUEUE_ID_ILLEGAL", {"queue_id": 2}),
        (QUEUE, {"store": "other"}, 404, "TOPIC_NOT_FOUND", {"store": "tidemark-0"}),
    ],
)
def test_refusals_are_problems_with_reason_and_facts(
    client: httpx.Client, path: str, params: dict[str, Any], status: int, reason: str, facts: dict[str, Any]
) -> None:
    """They are problem+json with a stable reason and facts for the next request."""
    response = client.get(path, params=params)
    problem = response.json()
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    assert (problem["status"], problem["reason"]) == (status, reason)
    assert facts.items() <= problem.items()


def test_a_pull_below_the_minimum_is_410(built: BuiltStore) -> None:
    """The problem has the offsets for the next request."""
    while built.end < built.log_file_size:
        built.append("orders", bytes(9000), queue_id=1)
    built.append("orders", b"last")
    built.publish()
    (built.root / "commitlog" / f"{0:020d}").unlink()
    with serve_query(built.root) as client:
        response = client.get(QUEUE, params={"offset": 3})
        problem = response.json()
        assert (response.status_code, problem["reason"]) == (410, "OFFSET_TOO_SMALL")
        assert (problem["min_offset"], problem["next_offset"], problem["max_offset"]) == (10, 10, 11)
        assert client.get(QUEUE, params={"offset": "earliest"}).json()["messages"][0]["queue_offset"] == 10


def test_an_acknowledged_offset_is_never_out_of_range(built: BuiltStore, client: httpx.Client) -> None:
    """While the watermark is below the committed offset: 200, no messages, the same cursor."""
    records = [built.append("orders", b"hidden") for _ in range(3)]
    built.commit()
    time.sleep(0.3)  # the new checkpoint is noticed within query_recheck_ms
    for offset in (10, 11, 12, 13):
        answer = client.get(QUEUE, params={"offset": offset}).json()
        assert (answer["status"], answer["next_offset"], answer["messages"]) == ("OFFSET_OVERFLOW_ONE", offset, [])
        assert answer["lag_bytes"] == built.end - records[0].physical_offset
    empty = client.get("/v1/topics/orders/queues/1/messages", params={"offset": 5}).json()
    assert (empty["status"], empty["next_offset"]) == ("NO_MESSAGE_IN_QUEUE", 5)
    built.publish()
    assert client.get(QUEUE, params={"offset": 12}).json()["messages"][0]["queue_offset"] == 12
    assert client.get(QUEUE, params={"offset": 14}).status_code == 416


# -- forms of the response ------------------------------------------------------------------------------------------


def test_an_ndjson_pull_has_one_line_per_message(client: httpx.Client) -> None:
    """There is one line per message; the facts are headers."""
    response = client.get(
        QUEUE, params={"offset": 8, "body_encoding": "utf8"}, headers={"Accept": "application/x-ndjson"}
    )
    assert response.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["body"] for line in response.text.splitlines()] == ["m8", "m9"]
    assert (response.headers["Tidemark-Next-Offset"], response.headers["Tidemark-Status"]) == ("10", "FOUND")


def test_an_arrow_pull_has_its_facts_in_schema_and_headers(client: httpx.Client) -> None:
    """The stream has the facts in its schema, and in headers."""
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    response = client.get(BATCHES, params={"offset": 1}, headers=accept)
    with pa.ipc.open_stream(response.content) as reader:
        metadata, table = reader.schema.metadata, reader.read_all()
    assert table["body"].to_pylist() == [b"b1", b"b2"]
    assert table["queue_offset"].to_pylist() == [1, 2]
    assert metadata[b"tidemark.next_offset"] == b"3"
    assert response.headers["Tidemark-Next-Offset"] == "3"
    empty = client.get(QUEUE, params={"offset": 10}, headers=accept)
    with pa.ipc.open_stream(empty.content) as reader:
        assert reader.read_all().num_rows == 0


def test_columns_that_need_python_code_are_built_on_a_thread(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need Python code for each message, which would block the event loop; other columns are made on the loop."""
    in_place: list[object] = []
    read_in_place = ReadThreads.read_in_place

    def noted(reads: ReadThreads, function: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
        in_place.append(function)
        return read_in_place(reads, function)

    monkeypatch.setattr(ReadThreads, "read_in_place", noted)
    for semantics, count in (("rocketmq", 0), ("tidemark", 1)):
        response = client.get(
            QUEUE,
            params={"semantics": semantics, "max_bytes": 4 << 20, "max_messages": 4096},
            headers={"Accept": "application/vnd.apache.arrow.stream"},
        )
        with pa.ipc.open_stream(response.raise_for_status().content) as reader:
            assert reader.read_all().num_rows == 10
        assert len(in_place) == count


def test_an_octet_stream_pull_returns_the_stored_records(built: BuiltStore, client: httpx.Client) -> None:
    """They are the bytes of the log, contiguous."""
    log = b"".join(path.read_bytes() for path in sorted((built.root / "commitlog").iterdir()))
    accept = {"Accept": "application/octet-stream"}
    whole = client.get(QUEUE, headers=accept)
    assert log.startswith(whole.content)
    assert len(whole.content) > 1000
    assert whole.headers["Tidemark-Message-Count"] == "10"
    tagged = client.get(QUEUE, params={"tag": "B"}, headers=accept)
    assert tagged.headers["Tidemark-Message-Count"] == "5"
    assert len(tagged.content) == len(whole.content) // 2
    batch = client.get(BATCHES, params={"offset": 1, "max_messages": 1}, headers=accept)
    assert batch.content == log[len(whole.content) : built.end]
    assert batch.headers["Tidemark-Next-Offset"] == "3"
    assert client.get(QUEUE, params={"offset": 10}, headers=accept).content == b""


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json"),
        ("text/html, application/json;q=0.5", "application/json"),
        ("application/json;q=0.1, application/octet-stream;q=0.9", "application/octet-stream"),
        ("application/ndjson", "application/x-ndjson"),
    ],
)
def test_the_accept_header_selects_the_format(client: httpx.Client, accept: str, media_type: str) -> None:
    assert client.get(QUEUE, headers={"Accept": accept}).headers["content-type"] == media_type


def test_an_unknown_format_is_406(client: httpx.Client) -> None:
    response = client.get(QUEUE, headers={"Accept": "text/html"})
    assert (response.status_code, response.json()["reason"]) == (406, "NOT_ACCEPTABLE")


# -- waiting ----------------------------------------------------------------------------------------------------------


def in_background(call: Any) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append((call(), time.monotonic())))
    thread.start()
    return thread, answers


def test_a_waiting_pull_gets_the_published_message(built: BuiltStore, client: httpx.Client) -> None:
    """It gets them soon; messages in another queue, or with another tag, do not end the wait."""
    call = lambda: client.get(QUEUE, params={"offset": 10, "wait_ms": 20_000, "tag": "B", "body_encoding": "utf8"})  # noqa: E731
    thread, answers = in_background(call)
    time.sleep(0.1)
    built.append("orders", b"other queue", {"TAGS": "B"}, queue_id=1)
    built.publish()
    built.append("orders", b"other tag", {"TAGS": "A"})
    built.publish()
    time.sleep(0.1)
    assert not answers
    built.append("orders", b"this", {"TAGS": "B"})
    published = time.monotonic()
    built.publish()
    thread.join()
    response, answered = answers[0]
    answer = response.json()
    assert [message["body"] for message in answer["messages"]] == ["this"]
    assert (answer["requested_offset"], answer["next_offset"], answer["status"]) == (10, 12, "FOUND")
    assert answered - published < 5


def test_a_wait_without_messages_ends_at_its_limit(client: httpx.Client) -> None:
    """The answer is 200, no messages, the same cursor, and not before the timeout."""
    began = time.monotonic()
    answer = client.get(QUEUE, params={"offset": 10, "wait_ms": 300}).json()
    assert 0.3 <= time.monotonic() - began < 5
    assert (answer["status"], answer["next_offset"], answer["wait_ms"]) == ("OFFSET_OVERFLOW_ONE", 10, 300)


def test_a_first_publication_wakes_waiting_pulls(built: BuiltStore) -> None:
    """There were no marks when the request came."""
    marks = built.root / "tidemark" / "indexer" / "marks"
    aside = marks.with_name("aside")
    marks.rename(aside)
    with serve_query(built.root, query_recheck_ms=50) as client:
        thread, answers = in_background(lambda: client.get(QUEUE, params={"offset": 0, "wait_ms": 20_000}))
        time.sleep(0.2)
        assert not answers
        aside.rename(marks)
        thread.join()
    assert len(answers[0][0].json()["messages"]) == 10


def test_a_stop_answers_waiting_pulls(built: BuiltStore) -> None:
    """A stop does not wait for long polls."""
    began = time.monotonic()
    with serve_query(built.root) as client:
        own = httpx.Client(base_url=client.base_url, timeout=60)
        thread, answers = in_background(lambda: own.get(QUEUE, params={"offset": 10, "wait_ms": 30_000}))
        time.sleep(0.2)
    thread.join()
    own.close()
    assert answers[0][0].status_code == 200
    assert time.monotonic() - began < 15


def test_waiting_pulls_above_the_limit_are_refused(built: BuiltStore) -> None:
    """Beyond query_max_waiting the answer is 429 with a retry time."""
    with serve_query(built.root, query_max_waiting=1) as client:
        thread, _ = in_background(lambda: client.get(QUEUE, params={"offset": 10, "wait_ms": 2_000}))
        time.sleep(0.3)
        response = client.get(QUEUE, params={"offset": 10, "wait_ms": 2_000})
        assert (response.status_code, response.json()["reason"]) == (429, "IN_FLIGHT_LIMIT")
        assert response.headers["Retry-After"] == "1"
        thread.join()


def test_a_disconnected_client_frees_its_waiting_place(built: BuiltStore) -> None:
    """Its place among the waiting requests is free again."""
    with serve_query(built.root, query_max_waiting=1) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.get(QUEUE, params={"offset": 10, "wait_ms": 20_000}, timeout=0.2)
        deadline = time.monotonic() + 10
        while client.get("/v1/status").json()["query"]["waiting_requests"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.parametrize("form", ["json", "records", "arrow", "many queues"])
def test_lost_units_are_reported_in_answer_metric_and_list(built: BuiltStore, client: httpx.Client, form: str) -> None:
    """Two units in the middle are zeroed: the loss is in the response, a metric and a list; other messages come."""
    built.write_units("orders", 0, 4, bytes(40))
    if form == "many queues":
        asked = {"queues": [{"topic": "orders", "queue_id": 0, "offset": 0}]}
        [page] = client.post("/v1/pull", json=asked).json()["answers"]
        skipped = page["skipped"]
        assert [message["queue_offset"] for message in page["messages"]] == [0, 1, 2, 3, 6, 7, 8, 9]
    elif form == "json":
        skipped = client.get(QUEUE).json()["skipped"]
    else:
        accept = {"records": "application/octet-stream", "arrow": "application/vnd.apache.arrow.stream"}[form]
        answer = client.get(QUEUE, headers={"Accept": accept})
        assert answer.headers["Tidemark-Message-Count"] == "8"
        skipped = json.loads(answer.headers["Tidemark-Skipped"])
    lost = [(4, "LENGTH", 1), (5, "LENGTH", 1)]
    assert [(skip["queue_offset"], skip["reason"], skip["message_count"]) for skip in skipped] == lost
    assert "tidemark_query_skipped_records_total 2.0" in client.get("/metrics").text
    for _ in range(2):
        client.get(QUEUE)
    units = client.get("/v1/corruptions").json()["lost_units"]
    assert [(unit["topic"], unit["queue_id"], unit["queue_offset"], unit["reason"]) for unit in units] == [
        ("orders", 0, offset, reason) for offset, reason, _ in lost
    ]


def test_decreasing_marks_are_not_published(built: BuiltStore, client: httpx.Client) -> None:
    """The pipeline builds an index again meanwhile; a waiting request gets the next messages."""
    before = client.get(QUEUE).json()
    built.publish(built.end // 2)
    time.sleep(0.5)
    after = client.get(QUEUE).json()
    assert after["watermark"]["physical_offset"] == before["watermark"]["physical_offset"] == built.end
    assert (after["max_offset"], after["messages"]) == (10, before["messages"])
    assert client.get("/v1/watermark").json()["watermark"]["physical_offset"] == built.end
    thread, answers = in_background(lambda: client.get(QUEUE, params={"offset": 10, "wait_ms": 20_000}))
    time.sleep(0.2)
    built.append("orders", b"new")
    built.publish()
    thread.join()
    assert [message["queue_offset"] for message in answers[0][0].json()["messages"]] == [10]
