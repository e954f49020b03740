from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from services.indexer.query.queue_allocation import Queue
from services.indexer.query.schema.request_bodies import (
    AppendBody,
    AppendMessage,
    HeartbeatBody,
    JoinBody,
    OffsetBody,
    OffsetsBody,
    PullQueuesBody,
    RetriedMessage,
    RetryBody,
    TopicBody,
)
from tidemark.format.tags import MAX_DELAY_LEVEL

QUEUE = {"topic": "orders", "queue_id": 0}
PLACE = {**QUEUE, "queue_offset": 5}


def raw_bodies(document: str) -> list[bytes]:
    """Return the bytes to store of each message of an append."""
    body = AppendBody.model_validate(json.loads(document))
    body.keep_json_texts(document)
    return [message.raw_body() for message in body.messages]


def test_a_body_is_decoded_as_its_encoding_says() -> None:
    document = '{"messages":[{"body":"ü"},{"body":"/w==","body_encoding":"base64"}]}'
    assert raw_bodies(document) == ["ü".encode(), b"\xff"]


@pytest.mark.parametrize(
    "text",
    ['{"b": 1,  "a": [1.0, 1e3]}', '"\\u00e9"', "null", "-0.10", '{"a":1,"a":2}', "123456789012345678901234567890"],
)
def test_a_json_body_is_stored_exactly_as_sent(text: str) -> None:
    document = '{"queue_id": 0, "messages": [{"body": "x"}, {"body_encoding": "json", "body": ' + text + "}]}"
    assert raw_bodies(document) == [b"x", text.encode()]


def test_the_last_of_repeated_json_members_counts() -> None:
    """Pydantic, which has checked the document, takes the last one too."""
    first, last = (f'[{{"body":{number},"body_encoding":"json"}}]' for number in (1, 2))
    assert raw_bodies(f'{{"messages":{first},"messages":{last}}}') == [b"2"]
    assert raw_bodies('{"messages":[{"body":1,"body_encoding":"json","body": 3}]}') == [b"3"]


@pytest.mark.parametrize("depth", [10, 100_000])
def test_a_json_body_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    message = AppendMessage(body=[], body_encoding="json")
    message.keep_json_text("[" * depth + "]" * depth)
    if depth == 10:
        assert message.raw_body() == b"[" * depth + b"]" * depth
    else:
        with pytest.raises(ValueError, match="body"):
            message.raw_body()


@pytest.mark.parametrize(("body", "encoding"), [(1, "utf8"), ("a", "base64"), ("YQ", "base64"), (1, "base64")])
def test_a_body_that_does_not_match_its_encoding_is_refused(body: Any, encoding: Any) -> None:
    with pytest.raises(ValueError, match="body"):
        AppendMessage(body=body, body_encoding=encoding).raw_body()


GOOD: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (AppendMessage, {"body": None, "body_encoding": "json"}),
    (PullQueuesBody, {"queues": [{**QUEUE, "offset": 7}, {**QUEUE, "queue_id": 1, "offset": "latest"}]}),
    (RetriedMessage, PLACE),
    (RetriedMessage, {"message_id": "7F00"}),
    (RetryBody, {"messages": [PLACE], "delay_level": -1}),
    (RetryBody, {"messages": [PLACE], "delay_level": MAX_DELAY_LEVEL}),
    (OffsetsBody, {"offsets": [{**QUEUE, "offset": 0}]}),
    (OffsetsBody, {"offsets": [{**QUEUE, "offset": 0}], "member_id": "one", "generation": 3}),
    (JoinBody, {"topics": ["%RETRY%g"]}),
]
BAD: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (AppendMessage, {"body": None}),
    (AppendMessage, {"body": "x", "flag": 1 << 31}),
    (AppendBody, {"messages": []}),
    (AppendBody, {"messages": [{"body": "x"}], "expected_next_offset": -1}),
    (TopicBody, {"topic": "a/b"}),
    (TopicBody, {"topic": "orders", "queues": 0}),
    (OffsetBody, {"offset": -1}),
    (OffsetBody, {"offset": "7"}),
    (OffsetBody, {"offset": 1 << 63}),
    (PullQueuesBody, {"queues": []}),
    (PullQueuesBody, {"queues": [{**QUEUE, "offset": 7}], "follow": True, "wait_ms": 5}),
    (PullQueuesBody, {"queues": [{**QUEUE, "offset": 7}], "max_seconds": 5}),
    (PullQueuesBody, {"queues": [{**QUEUE, "offset": "first"}]}),
    (PullQueuesBody, {"queues": [{**QUEUE, "offset": True}]}),
    (RetriedMessage, {}),
    (RetriedMessage, QUEUE),
    (RetriedMessage, {**PLACE, "message_id": "7F00"}),
    (RetriedMessage, {"topic": "orders", "message_id": "7F00"}),
    (RetryBody, {"messages": [PLACE], "delay_level": MAX_DELAY_LEVEL + 1}),
    (RetryBody, {"messages": [PLACE], "delay_level": -2}),
    (OffsetsBody, {"offsets": [{**QUEUE, "offset": 0}, {**QUEUE, "offset": 1}]}),
    (OffsetsBody, {"offsets": [{**QUEUE, "offset": 0}], "member_id": "one"}),
    (OffsetsBody, {"offsets": [{**QUEUE, "offset": 0}], "generation": 3}),
    (JoinBody, {"topics": []}),
    (JoinBody, {"topics": ["orders"], "member_id": "a b"}),
    (HeartbeatBody, {"generation": 1, "holds": [QUEUE], "color": "red"}),
]


@pytest.mark.parametrize(("model", "content"), GOOD)
def test_a_valid_request_body_is_accepted(model: type[BaseModel], content: dict[str, Any]) -> None:
    model.model_validate(content)


@pytest.mark.parametrize(("model", "content"), BAD)
def test_an_invalid_request_body_is_refused(model: type[BaseModel], content: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(content)


def test_repeated_queues_of_a_body_count_once() -> None:
    beat = HeartbeatBody.model_validate({"generation": 1, "holds": [QUEUE, QUEUE]})
    offsets = OffsetsBody.model_validate({"offsets": [{**QUEUE, "offset": 4}]})
    assert beat.queues == offsets.queues == {Queue("orders", 0)}


@pytest.mark.parametrize(
    "model", [AppendBody, TopicBody, OffsetBody, JoinBody, HeartbeatBody, PullQueuesBody, RetryBody, OffsetsBody]
)
def test_the_documented_example_is_accepted(model: type[BaseModel]) -> None:
    for example in model.model_json_schema()["examples"]:
        model.model_validate(example)
