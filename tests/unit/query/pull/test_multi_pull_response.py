from __future__ import annotations

import asyncio
import email
import email.policy
import json
from types import SimpleNamespace
from typing import cast

import pytest
from starlette.responses import Response
from starlette.types import Message

from services.indexer.query.config import QuerySettings
from services.indexer.query.pull.answer_form import BodyFormat
from services.indexer.query.pull.multi_pull_response import refused_part, response_of
from services.indexer.query.pull.pull_response import PullBody
from services.indexer.query.state.service_state import ServiceState
from services.indexer.query.state.unsent_bytes_limit import UnsentBytesLimit
from tidemark.errors import OffsetTooSmallError
from tidemark.read.file_run import FileRange

STATE = cast(
    ServiceState, SimpleNamespace(settings=QuerySettings(store_name="here"), answers=UnsentBytesLimit(1 << 30))
)
OCTETS = BodyFormat.RECORDS.value


def body_of(response: Response) -> bytes:
    body = b""

    async def send(message: Message) -> None:
        nonlocal body
        body += bytes(message.get("body", b""))

    async def receive() -> Message:
        raise AssertionError("a response does not read the request")

    asyncio.run(response({"type": "http"}, receive, send))
    return body


def part(content: bytes, media_type: str = OCTETS, **headers: str) -> PullBody:
    return PullBody(media_type, headers, [content[:1], content[1:]])


@pytest.mark.parametrize("answers", [[], ['{"a":1}'], ['{"a":1}', '{"b":2}', '{"c":[3]}']])
def test_json_is_one_document_of_all_answers(answers: list[str]) -> None:
    parts = [part(answer.encode(), BodyFormat.JSON.value) for answer in answers]
    response = response_of(parts, 7, BodyFormat.JSON, STATE)
    expected = {"store": "here", "looked_at": 7, "answers": [json.loads(answer) for answer in answers]}
    assert json.loads(body_of(response)) == expected


def test_other_forms_are_parts_that_any_mime_parser_reads() -> None:
    """Bytes of a body may look like a boundary, or end with a line break."""
    bodies = [b"--\r\n--\r\n", b"a\r\n", bytes(range(256))]
    parts = [part(content, Number=str(number)) for number, content in enumerate(bodies)]
    response = response_of(parts, 3, BodyFormat.RECORDS, STATE)
    head = f"Content-Type: {response.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + body_of(response), policy=email.policy.HTTP)
    assert message.get_content_type() == "multipart/mixed"
    found = [(one.get_content_type(), one["Number"], one.get_payload(decode=True)) for one in message.iter_parts()]
    assert found == [(OCTETS, str(number), content) for number, content in enumerate(bodies)]
    assert (response.headers["Tidemark-Store"], response.headers["Tidemark-Looked-At"]) == ("here", "3")


def test_an_answer_without_parts_in_a_binary_format_is_204() -> None:
    response = response_of([], 2, BodyFormat.ARROW, STATE)
    assert (response.status_code, response.headers["Tidemark-Looked-At"]) == (204, "2")


@pytest.mark.parametrize("body_format", [BodyFormat.JSON, BodyFormat.RECORDS])
def test_an_answer_is_not_cached_and_depends_on_accept(body_format: BodyFormat) -> None:
    headers = response_of([part(b"{}")], 1, body_format, STATE).headers
    assert (headers["Cache-Control"], headers["Vary"]) == ("no-store", "Accept")


def test_a_refused_queue_is_a_problem_that_names_it() -> None:
    refused = refused_part(OffsetTooSmallError("gone", min_offset=5), "orders", 3)
    problem = json.loads(b"".join(one for one in refused.pieces if not isinstance(one, FileRange)))
    assert {name: problem[name] for name in ("reason", "topic", "queue_id", "min_offset")} == {
        "reason": "OFFSET_TOO_SMALL",
        "topic": "orders",
        "queue_id": 3,
        "min_offset": 5,
    }
    assert refused.media_type == "application/problem+json"
    assert refused.headers == {"Tidemark-Topic": "orders", "Tidemark-Queue-Id": "3"}
