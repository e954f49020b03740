"""Pulls from many queues by one request: parts, limits, refusals of some, and waiting for any."""

from __future__ import annotations

import email
import email.policy
import json
import os
import time
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.integration.query.test_pull_http import in_background
from tests.query_server import serve_query

pytestmark = pytest.mark.integration
Part = tuple[dict[str, str], bytes]  # headers, body


def queue(topic: str, queue_id: int, offset: int | str) -> dict[str, Any]:
    return {"topic": topic, "queue_id": queue_id, "offset": offset}


ALL = [queue("orders", 0, 7), queue("orders", 1, 0), queue("batches", 0, 1)]


def pull(client: httpx.Client, queues: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    response = client.post("/v1/pull", json={"queues": queues, "body_encoding": "utf8", **more})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def bodies(answer: dict[str, Any]) -> dict[tuple[str, int], list[str]]:
    return {
        (one["topic"], one["queue_id"]): [message["body"] for message in one["messages"]] for one in answer["answers"]
    }


def parts_of(response: httpx.Response) -> list[Part]:
    """Parse with the standard library's MIME parser."""
    head = f"Content-Type: {response.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + response.content, policy=email.policy.HTTP)
    assert message.get_content_type() == "multipart/mixed"
    assert not message.defects
    parts = []
    for part in message.iter_parts():
        body = part.get_payload(decode=True)
        assert isinstance(body, bytes)
        assert len(body) == int(part["Content-Length"])
        parts.append(({name: str(value) for name, value in part.items()}, body))
    return parts


# -- contents of the answer -------------------------------------------------------------------------------------------


def test_each_queue_is_answered_as_by_a_pull_of_its_own(client: httpx.Client) -> None:
    """Only the limits are shared; a queue without new messages has no answer."""
    answer = pull(client, ALL)
    assert (answer["store"], answer["looked_at"]) == ("tidemark-0", 3)
    assert bodies(answer) == {("orders", 0): ["m7", "m8", "m9"], ("batches", 0): ["b1", "b2"]}
    for asked, given in zip((ALL[0], ALL[2]), answer["answers"], strict=True):
        path = f"/v1/topics/{asked['topic']}/queues/{asked['queue_id']}/messages"
        own = client.get(path, params={"offset": asked["offset"], "body_encoding": "utf8"}).json()
        different = {"max_messages", "max_bytes"}
        assert {name: given[name] for name in own if name not in different} == {
            name: own[name] for name in own if name not in different
        }


@pytest.mark.parametrize("accept", ["application/octet-stream", "application/vnd.apache.arrow.stream"])
def test_a_multi_pull_in_other_formats_is_multipart(client: httpx.Client, accept: str) -> None:
    """Headers and bytes are those of a pull of this queue."""
    response = client.post("/v1/pull", json={"queues": ALL}, headers={"Accept": accept})
    assert response.headers["Tidemark-Looked-At"] == "3"
    parts = parts_of(response)
    assert len(parts) == 2
    limited = ("Tidemark-Max-Messages", "Tidemark-Max-Bytes")  # the remainder after the previous queues
    for asked, (headers, body) in zip((ALL[0], ALL[2]), parts, strict=True):
        path = f"/v1/topics/{asked['topic']}/queues/{asked['queue_id']}/messages"
        own = client.get(
            path,
            params={"offset": asked["offset"], "max_messages": headers[limited[0]], "max_bytes": headers[limited[1]]},
            headers={"Accept": accept},
        )
        assert body == own.content
        assert headers["Content-Type"] == accept
        told = {name: value for name, value in headers.items() if name.startswith("Tidemark-")}
        assert told == {name: own.headers[name] for name in told}
        assert len(told) == sum(name.startswith("tidemark-") for name in own.headers)


@pytest.mark.parametrize("max_bytes", [1, 4_000, 30_000, 1 << 20])
def test_many_queues_of_records_are_answered_as_one_by_one(built: BuiltStore, max_bytes: int) -> None:
    """One of them has a damaged record, and large and small answers are sent in other ways."""
    built.topic("many", queues=50)
    written = [built.append("many", b"%d" % number * 60, queue_id=number % 50) for number in range(500)]
    built.publish()
    built.write_log(written[333].physical_offset + written[333].size - 30, b"\0wr")
    octets = {"Accept": "application/octet-stream"}
    with serve_query(built.root, query_max_messages=10_000) as http:
        asked = {"queues": [queue("many", queue_id, 0) for queue_id in range(50)], "max_messages": 10_000}
        answer = http.post("/v1/pull", json={**asked, "max_bytes": max_bytes}, headers=octets)
        parts = parts_of(answer)
        assert len(parts) == int(answer.headers["Tidemark-Looked-At"]) == (50 if max_bytes == 1 << 20 else len(parts))
        for queue_id, (headers, body) in enumerate(parts):
            path = f"/v1/topics/many/queues/{queue_id}/messages"
            own = http.get(path, params={"offset": 0, "max_bytes": headers["Tidemark-Max-Bytes"]}, headers=octets)
            assert body == own.content
            names = ("Tidemark-Queue-Id", "Tidemark-Status", "Tidemark-Next-Offset", "Tidemark-Message-Count",
                     "Tidemark-Skipped")  # fmt: skip
            assert [headers[name] for name in names] == [own.headers[name] for name in names]
    if max_bytes == 1 << 20:
        damaged = [
            json.loads(headers["Tidemark-Skipped"]) for headers, _ in parts if headers["Tidemark-Skipped"] != "[]"
        ]
        assert [[skip["reason"] for skip in skipped] for skipped in damaged] == [["BODY_CRC"]]


def test_a_multi_pull_without_messages_is_empty(client: httpx.Client) -> None:
    """The status is 204 in the other forms, because a MIME body needs at least one part."""
    queues = [queue("orders", 0, 10), queue("orders", 1, 0)]
    assert pull(client, queues) == {"store": "tidemark-0", "looked_at": 2, "answers": []}
    response = client.post("/v1/pull", json={"queues": queues}, headers={"Accept": "application/octet-stream"})
    assert (response.status_code, response.content, response.headers["Tidemark-Looked-At"]) == (204, b"", "2")


def test_earliest_and_latest_are_answered_with_their_offsets(client: httpx.Client) -> None:
    """They are answered even without messages: otherwise a repeated request by name would skip new messages.

    They do not wait.
    """
    began = time.monotonic()
    answer = pull(client, [queue("orders", 0, "latest"), queue("orders", 1, "earliest")], wait_ms=20_000)
    assert time.monotonic() - began < 15
    assert [(one["next_offset"], one["messages"]) for one in answer["answers"]] == [(10, []), (0, [])]
    answer = pull(client, [queue("orders", 0, "earliest")], max_messages=1)
    assert bodies(answer) == {("orders", 0): ["m0"]}


def test_a_numeric_offset_may_be_a_string(client: httpx.Client) -> None:
    """The path's arguments allow the same."""
    assert bodies(pull(client, [queue("orders", 0, "9")])) == {("orders", 0): ["m9"]}


# -- limits -----------------------------------------------------------------------------------------------------------


def test_limits_apply_to_all_queues_together(built: BuiltStore, client: httpx.Client) -> None:
    """Queues are read in the requested order; the others were not read, and have no answer."""
    queues = [queue("orders", 0, 0), queue("batches", 0, 0), queue("orders", 1, 0)]
    answer = pull(client, queues, max_messages=11)
    assert bodies(answer) == {("orders", 0): [f"m{i}" for i in range(10)], ("batches", 0): ["b0"]}
    assert answer["looked_at"] == 2
    answer = pull(client, queues, max_messages=10)
    assert (list(bodies(answer)), answer["looked_at"]) == ([("orders", 0)], 1)
    answer = pull(client, queues[1:] + queues[:1], max_bytes=1)
    assert (bodies(answer), answer["looked_at"]) == ({("batches", 0): ["b0", "b1", "b2"]}, 1)
    size = len(
        client.get("/v1/topics/orders/queues/0/messages", headers={"Accept": "application/octet-stream"}).content
    )
    answer = pull(client, queues, max_bytes=size + 1)
    assert [len(one["messages"]) for one in answer["answers"]] == [10, 3]


def test_queues_that_were_not_read_are_answered_next_time(built: BuiltStore, client: httpx.Client) -> None:
    """A client that continues with the returned offsets gets everything once, with any limits."""
    built.topic("many", queues=30)
    for number in range(300):
        built.append("many", b"%d" % number, queue_id=number * 7 % 30)
    built.publish()
    offsets = dict.fromkeys(range(30), 0)
    order = list(offsets)
    got: list[str] = []
    for _ in range(300):
        answer = pull(client, [queue("many", one, offsets[one]) for one in order], max_messages=7)
        for one in answer["answers"]:
            got += [message["body"] for message in one["messages"]]
            offsets[one["queue_id"]] = one["next_offset"]
        if not answer["answers"]:
            break
        order = order[answer["looked_at"] :] + order[: answer["looked_at"]]
    assert answer["looked_at"] == 30
    assert sorted(map(int, got)) == list(range(300))


def test_decompressed_bodies_limit_a_multi_pull(tmp_path: Path) -> None:
    """Decompressed, each queue fits into the limit; all of them together would be many times larger."""
    store = BuiltStore(tmp_path / "store")
    store.topic("bombs", queues=5)
    for queue_id in range(5):
        store.append("bombs", zlib.compress(bytes(40 << 20)), queue_id=queue_id, sys_flag=0x301)
    store.publish()
    with serve_query(store.root) as client:
        queues = [queue("bombs", queue_id, 0) for queue_id in range(5)]
        accept = {"Accept": "application/vnd.apache.arrow.stream"}
        response = client.post("/v1/pull", json={"queues": queues}, headers=accept)
        assert response.headers["Tidemark-Looked-At"] == "2"
        assert len(response.content) < 81 << 20


# -- refusals --------------------------------------------------------------------------------------------------------


def test_a_queue_that_is_refused_does_not_stop_the_others(client: httpx.Client) -> None:
    """Its part is the problem that its own pull would return."""
    queues = [queue("nope", 0, 0), queue("orders", 7, 0), queue("orders", 0, 11), queue("orders", 0 + 1, 0), *ALL[2:]]
    answer = pull(client, queues)
    *refused, found = answer["answers"]
    assert [(one["reason"], one["status"], one["topic"], one["queue_id"]) for one in refused] == [
        ("TOPIC_NOT_FOUND", 404, "nope", 0),
        ("QUEUE_ID_ILLEGAL", 404, "orders", 7),
        ("OFFSET_OUT_OF_RANGE", 416, "orders", 0),
    ]
    assert refused[2]["next_offset"] == 10
    assert len(found["messages"]) == 2
    response = client.post("/v1/pull", json={"queues": queues}, headers={"Accept": "application/octet-stream"})
    (headers, body), *_, last = parts_of(response)
    assert (headers["Content-Type"], headers["Tidemark-Topic"]) == ("application/problem+json", "nope")
    assert json.loads(body)["reason"] == "TOPIC_NOT_FOUND"
    assert last[0]["Tidemark-Status"] == "FOUND"


@pytest.mark.parametrize(
    ("body", "status", "where"),
    [
        ({"queues": []}, 422, "body.queues"),
        ({}, 422, "body.queues"),
        ({"queues": [queue("orders", 0, 0), queue("orders", 0, 1)]}, 422, "twice"),
        ({"queues": [queue("orders", 0, -1)]}, 422, "body.queues.0.offset"),
        ({"queues": [queue("orders", 0, True)]}, 422, "body.queues.0.offset"),
        ({"queues": [queue("orders", 0, 1 << 63)]}, 422, "body.queues.0.offset"),
        ({"queues": [queue("../x", 0, 0)]}, 422, "body.queues.0.topic"),
        ({"queues": [queue("orders", -1, 0)]}, 422, "body.queues.0.queue_id"),
        ({"queues": [{"topic": "orders", "queue_id": 0}]}, 422, "body.queues.0.offset"),
        ({"queues": ALL, "max_messages": 0}, 422, "body.max_messages"),
        ({"queues": ALL, "semantics": "rocketmq"}, 422, "body.semantics"),
        ({"queues": ALL, "store": "other"}, 404, "store"),
        ([], 422, "body"),
    ],
)
def test_invalid_multi_pulls_are_refused(client: httpx.Client, body: Any, status: int, where: str) -> None:
    response = client.post("/v1/pull", json=body)
    assert response.status_code == status
    assert where in response.json()["detail"]


def test_a_multi_pull_of_too_many_queues_is_refused(built: BuiltStore) -> None:
    with serve_query(built.root, query_max_pull_queues=2) as client:
        response = client.post("/v1/pull", json={"queues": ALL})
        assert (response.status_code, response.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")
        assert response.json()["limit"] == 2
        assert client.post("/v1/pull", json={"queues": ALL[:2]}).status_code == 200
        assert client.post("/v1/pull?wait_ms=3", json={"queues": ALL[:2]}).status_code == 422


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_a_message_in_any_queue_ends_the_wait(built: BuiltStore, client: httpx.Client) -> None:
    """Only this queue has an answer."""
    queues = [queue("orders", 0, 10), queue("orders", 1, 0), queue("batches", 0, 3)]
    thread, answers = in_background(lambda: pull(client, queues, wait_ms=20_000))
    time.sleep(0.2)
    assert not answers
    built.append("orders", b"this", queue_id=1)
    published = time.monotonic()
    built.publish()
    thread.join()
    answer, answered = answers[0]
    assert bodies(answer) == {("orders", 1): ["this"]}
    assert answer["looked_at"] == 3
    assert answered - published < 5


def test_a_message_of_another_tag_does_not_end_the_wait(built: BuiltStore, client: httpx.Client) -> None:
    """At the end of the wait, the offset up to which nothing matched is returned."""
    queues = [queue("orders", 0, 9), queue("orders", 1, 0)]
    thread, answers = in_background(lambda: pull(client, queues, wait_ms=1_500, tag=["C"]))
    time.sleep(0.2)
    built.append("orders", b"no", {"TAGS": "D"}, queue_id=1)
    built.publish()
    time.sleep(0.2)
    assert not answers
    thread.join()
    answer, _ = answers[0]
    assert [(one["queue_id"], one["next_offset"], one["messages"]) for one in answer["answers"]] == [
        (0, 10, []),
        (1, 1, []),
    ]


def test_a_wait_without_messages_ends_at_its_limit(client: httpx.Client) -> None:
    began = time.monotonic()
    assert pull(client, [queue("orders", 0, 10), queue("orders", 1, 0)], wait_ms=300)["answers"] == []
    assert 0.3 <= time.monotonic() - began < 5


def test_an_acknowledged_offset_is_waited_for(built: BuiltStore, client: httpx.Client) -> None:
    """Above the watermark and below the committed offset there is no refusal and no answer until it is indexed."""
    for _ in range(3):
        built.append("orders", b"hidden")
    built.commit()
    time.sleep(0.3)  # the new checkpoint is noticed within query_recheck_ms
    assert pull(client, [queue("orders", 0, 12)])["answers"] == []
    thread, answers = in_background(lambda: pull(client, [queue("orders", 0, 12)], wait_ms=20_000))
    time.sleep(0.2)
    built.publish()
    thread.join()
    assert [message["queue_offset"] for message in answers[0][0]["answers"][0]["messages"]] == [12]


def test_thousands_of_queues_wait_in_one_request(tmp_path: Path) -> None:
    """They take one of the places for waiting requests, and cost little of the service's time."""
    store = BuiltStore(tmp_path / "store")
    store.topic("many", queues=5_000)
    store.topic("other")
    store.append("other", b"first")
    store.publish()
    queues = [queue("many", queue_id, 0) for queue_id in range(5_000)]
    with serve_query(store.root, query_max_waiting_per_client=1) as client:
        thread, answers = in_background(lambda: pull(client, queues, wait_ms=30_000))
        time.sleep(1)
        began, used = time.monotonic(), _processor_s()
        while time.monotonic() - began < 2:
            store.append("other", b"not theirs")
            store.publish()
            time.sleep(0.005)
        used = _processor_s() - used
        assert not answers
        store.append("many", b"theirs", queue_id=4_321)
        store.publish()
        thread.join()
    assert bodies(answers[0][0]) == {("many", 4_321): ["theirs"]}
    assert used < 1.6, "of two seconds, this test's own appends among them"


def _processor_s() -> float:
    times = os.times()
    return times.user + times.system
