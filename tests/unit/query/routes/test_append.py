from __future__ import annotations

from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from services.indexer.query.routes.append import parse_json
from tests.built_store import BuiltStore
from tests.unit.query.routes.fake_forward import AUTHORIZATION, FakeForward
from tests.unit.query.served_app import ServedApp
from tidemark.errors import ArgumentIllegalError, WriterUnreachableError

PATH = "/v1/topics/orders/messages"


def append(service: ServedApp, content: str | bytes, **headers: str) -> httpx.Response:
    return service.ask("POST", PATH, content=content, headers=headers)


def test_a_batch_is_forwarded_whole_with_its_key_and_authorization(service: ServedApp) -> None:
    forward = FakeForward.put_into(service)
    headers = {"Idempotency-Key": "once", "Authorization": AUTHORIZATION}
    answer = append(service, '{"messages":[{"body":"a"},{"body":"Yg==","body_encoding":"base64"}]}', **headers)
    assert (answer.status_code, answer.json()["queue_offset"], answer.json()["topic"]) == (201, 41, "orders")
    assert forward.appended == [("orders", [b"a", b"b"], "once")]
    assert forward.authorizations == [AUTHORIZATION]


def test_a_batch_whose_flush_is_not_confirmed_is_accepted(service: ServedApp) -> None:
    FakeForward.put_into(service, is_flushed=False)
    assert append(service, '{"messages":[{"body":"a"}]}').status_code == 202


def test_a_json_body_is_stored_character_by_character(service: ServedApp) -> None:
    forward = FakeForward.put_into(service)
    text = '{ "n": 1.10, "n": 1e2,\t"ü": "\\u00fc" }'
    append(service, '{"messages":[{"body_encoding":"json","body":' + text + "}]}")
    assert forward.appended[0][1] == [text.encode()]


@pytest.mark.parametrize(
    ("content", "argument"),
    [
        ('{"messages":[{"body":"a"},{"body":"!","body_encoding":"base64"}]}', "messages.1.body"),
        ('{"messages":[{"body":1}]}', "messages.0.body"),
        ("{", "body"),
    ],
)
def test_a_body_that_does_not_match_its_encoding_is_refused_with_its_argument(
    service: ServedApp, content: str, argument: str
) -> None:
    forward = FakeForward.put_into(service)
    answer = append(service, content)
    assert (answer.status_code, answer.json()["argument"]) == (422, argument)
    assert forward.appended == []


@pytest.mark.parametrize("content", ['{"messages":[]}', '{"messages":[{"body":"a","color":"red"}]}', "[]", "{}"])
def test_a_request_of_another_shape_is_refused(service: ServedApp, content: str) -> None:
    forward = FakeForward.put_into(service)
    answer = append(service, content)
    assert (answer.status_code, answer.json()["reason"], forward.appended) == (422, "ARGUMENT_ILLEGAL", [])


def test_a_query_parameter_of_append_is_refused(service: ServedApp) -> None:
    FakeForward.put_into(service)
    answer = service.ask("POST", f"{PATH}?queue_id=1", json={"messages": [{"body": "a"}]})
    assert (answer.status_code, answer.json()["argument"]) == (422, "queue_id")


def test_a_request_above_the_limit_is_refused_before_it_is_read_completely(built: BuiltStore) -> None:
    pieces: list[int] = []

    async def endless() -> Any:
        for number in range(100):
            pieces.append(number)
            yield b"x" * 512

    with ServedApp(built, query_max_request_bytes=1024) as service:
        answer = service.ask("POST", PATH, content=endless())
    assert (answer.status_code, answer.json()["limit_bytes"]) == (413, 1024)
    assert len(pieces) == 3


def test_a_failure_of_the_writer_is_returned_to_the_caller(service: ServedApp) -> None:
    FakeForward.put_into(service).failure = WriterUnreachableError("gone")
    answer = append(service, '{"messages":[{"body":"a"}]}')
    assert (answer.status_code, answer.json()["reason"]) == (503, "WRITER_UNREACHABLE")


class Numbers(BaseModel):
    n: int


def test_a_body_is_parsed_into_its_model() -> None:
    assert parse_json(b'{"n": 3}', Numbers).n == 3
    with pytest.raises(ArgumentIllegalError):
        parse_json(b'{"n": 3', Numbers)
