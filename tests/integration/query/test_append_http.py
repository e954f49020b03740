"""POST: forwarded to a real writer over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.writer.harness import RunningWriter, stored_records
from tests.query_server import serve_query
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.integration

TOPIC = "/v1/topics/orders/messages"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunningWriter]:
    with RunningWriter(tmp_path / "store") as running:
        yield running


@pytest.fixture
def client(writer: RunningWriter) -> Iterator[httpx.Client]:
    with serve_query(writer.root, writer_address=writer.address) as client:
        yield client


def batch(*bodies: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"body": body} for body in bodies], **more}


def test_a_batch_is_appended_and_acknowledged(client: httpx.Client) -> None:
    """The status is 201, with offsets and ids of all messages."""
    first = client.post(TOPIC, json=batch("a", "b", queue_id=1))
    answer = first.json()
    assert first.status_code == 201, answer
    names = (
        "store",
        "topic",
        "status",
        "queue_id",
        "queue_offset",
        "message_count",
        "next_offset",
        "duplicate",
        "term",
    )
    assert [answer[name] for name in names] == ["tidemark-0", "orders", "PUT_OK", 1, 0, 2, 2, False, 1]
    assert answer["physical_offsets"][0] == answer["physical_offset"]
    assert [int(text[-16:], 16) for text in answer["offset_msg_ids"]] == answer["physical_offsets"]
    assert client.post(TOPIC, json=batch("c", queue_id=1)).json()["queue_offset"] == 2


def test_acknowledged_messages_can_be_pulled(writer: RunningWriter, client: httpx.Client) -> None:
    """Before it is indexed it is not yet visible, but never out of range."""
    answer = client.post(
        TOPIC,
        json={
            "queue_id": 0,
            "messages": [
                {"body": {"n": 1}, "body_encoding": "json", "tag": "A", "keys": ["k1", "k2"], "properties": {"x": "y"}}
            ],
        },
    ).json()
    marks = Marks.open_to_write(writer.root / "tidemark" / "indexer" / "marks", DiskStorage(), shards=1, term=1)
    with serve_query(writer.root) as reader:
        pulled = reader.get("/v1/topics/orders/queues/0/messages", params={"offset": answer["queue_offset"]}).json()
        assert (pulled["status"], pulled["next_offset"]) == ("NO_MESSAGE_IN_QUEUE", 0)
        assert (pulled["committed_offset"], pulled["lag_bytes"]) == (answer["end_physical_offset"],) * 2
        response = reader.get(f"/v1/messages/{answer['offset_msg_ids'][0]}")
        assert (response.status_code, response.json()["reason"]) == (404, "NOT_YET_VISIBLE")
    marks.close()


def test_the_answer_for_a_delayed_message_has_its_delivery_time(client: httpx.Client) -> None:
    """Level 3 is 10 s."""
    now, later = (
        client.post(TOPIC, json={"messages": [{"body": "a", "properties": properties}]}).json()
        for properties in ({}, {"DELAY": "3"})
    )
    assert now["deliver_timestamp_ms"] is None
    assert later["deliver_timestamp_ms"] == later["store_timestamp_ms"] + 10_000


def test_a_repeat_is_answered_with_the_offsets_of_the_first(client: httpx.Client) -> None:
    """The Idempotency-Key is the request id."""
    headers = {"Idempotency-Key": "order-4711"}
    first = client.post(TOPIC, json=batch("a", queue_id=0), headers=headers).json()
    again = client.post(TOPIC, json=batch("a", queue_id=0), headers=headers).json()
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert again["physical_offset"] == first["physical_offset"]
    other = client.post(TOPIC, json=batch("b", queue_id=0), headers=headers)
    assert (other.status_code, other.json()["reason"]) == (409, "REQUEST_ID_CONFLICT")


def test_a_refusal_of_the_writer_is_returned_with_its_reason(client: httpx.Client) -> None:
    """The problem has the writer's facts."""
    client.post(TOPIC, json=batch("a", queue_id=0))
    response = client.post(TOPIC, json=batch("b", queue_id=0, expected_next_offset=7))
    problem = response.json()
    assert (response.status_code, problem["reason"]) == (412, "NEXT_OFFSET_MISMATCH")
    assert (problem["expected"], problem["actual"]) == (7, 1)
    assert client.post(TOPIC, json=batch("b", queue_id=99)).status_code == 404
    assert client.post("/v1/topics/SCHEDULE_TOPIC_XXXX/messages", json=batch("b")).status_code == 403


def test_an_unreachable_writer_is_503(tmp_path: Path) -> None:
    """Nothing listens at its address."""
    with serve_query(tmp_path, writer_address="127.0.0.1:1", query_writer_timeout_ms=3_000) as client:
        response = client.post(TOPIC, json=batch("a"))
        assert (response.status_code, response.json()["reason"]) == (503, "WRITER_UNREACHABLE")


JSON_TEXTS = [
    "123456789012345678901234567890", '{"id": 18446744073709551616}', '{"id": 9007199254740993}', "1.10", "100.0",
    '{"decimal": 12345678901234567890.123456789}', '{"a": 1, "a": 2}', '{"z": 1, "a": 2}', '"\\ud83d\\ude00"',
    '"\\u0041\\/"', "-0.0", "-0", "1E2", "null", "true", '""', "[]", '{ "x" : [ 1 ,\t2 ] }', '{"a":\n1}',
    "[" * 500 + "]" * 500, '{"body": 1.0, "messages": [{"body": 2}]}',
]  # fmt: skip


def test_a_json_body_is_stored_byte_for_byte(writer: RunningWriter, client: httpx.Client) -> None:
    """Numbers beyond a double, repeated names, order, escapes and blanks are unchanged."""
    messages = [f'{{"body_encoding": "json", "tag": "A",\r\n "body" :  {text}  }}' for text in JSON_TEXTS]
    messages.append('{"body": "text \\u0041"}')
    content = f'{{"queue_id": 0, "messages": [{" , ".join(messages)}]}}'.encode()
    answer = client.post(TOPIC, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text
    records = stored_records(writer.root)
    assert [record.body.decode() for record in records] == [*JSON_TEXTS, "text A"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1e400", "column"),
        ("[NaN]", "column"),
        ('"\\ud800"', "column"),
        ("[" * 501 + "]" * 501, "messages.1: body: it is nested deeper than 500 levels"),
        ("[" * 980 + "]" * 980, "500 levels"),
    ],
)
def test_an_unreadable_json_body_is_refused_with_its_position(client: httpx.Client, text: str, what: str) -> None:
    content = f'{{"messages": [{{"body": "a"}}, {{"body_encoding": "json", "body": {text}}}]}}'
    answer = client.post(TOPIC, content=content.encode())
    assert answer.status_code == 422, answer.text
    assert what in answer.json()["detail"]


def test_the_last_of_repeated_json_names_counts(writer: RunningWriter, client: httpx.Client) -> None:
    """This holds for the text of a JSON body too, so that the stored value is the checked one."""
    content = (
        '{"messages": 5, "messages": [{"body": 1}, {"body": 2}, {"body": 3}], "queue_id": 0, "messages": '
        '[{"body_encoding": "json", "body": 1.0, "body": 2.0}]}'
    )
    assert client.post(TOPIC, content=content.encode()).status_code == 201
    assert [record.body for record in stored_records(writer.root)] == [b"2.0"]
