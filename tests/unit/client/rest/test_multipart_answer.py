"""Responses of several queues: valid parts, and invalid bytes."""

from __future__ import annotations

import pytest

from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.connections import Answer
from tidemark.client.rest.multipart_answer import parts_of
from tidemark.errors import QueryUnreachableError

RECORDS, PROBLEM = "application/octet-stream", "application/problem+json"


def part(content: bytes, media_type: str = RECORDS, *, size: int | None = None, queue_id: int = 0) -> bytes:
    lines = [
        "\r\n--edge",
        f"Content-Type: {media_type}",
        f"Content-Length: {len(content) if size is None else size}",
        "Tidemark-Topic: orders",
        f"Tidemark-Queue-Id: {queue_id}",
        'Tidemark-Skipped: [{"reason": "a: b"}]',
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


END = b"\r\n--edge--\r\n"


def answer(body: bytes) -> Answer:
    return Answer(200, {}, memoryview(body))


def test_multipart_parts_are_split_by_length() -> None:
    """Contents may be any bytes, even a boundary, because each part has a length."""
    contents = [b"records", b"", b"\r\n--edge--\r\n", bytes(40_000)]
    found = list(parts_of(answer(b"".join(part(one, queue_id=i) for i, one in enumerate(contents)) + END)))
    assert [bytes(one.answer.body) for one in found] == contents
    assert [one.queue for one in found] == [TopicQueue("orders", i) for i in range(4)]
    assert {one.answer.status for one in found} == {200}
    assert found[0].answer.headers["Tidemark-Skipped"] == '[{"reason": "a: b"}]'


def test_a_problem_has_its_status() -> None:
    ((_, refused),) = parts_of(answer(part(b'{"status": 416, "reason": "OFFSET_OUT_OF_RANGE"}', PROBLEM) + END))
    assert (refused.status, refused.is_error) == (416, True)


@pytest.mark.parametrize("body", [b"", END], ids=["empty", "no part"])
def test_an_empty_multipart_answer_has_no_parts(body: bytes) -> None:
    assert list(parts_of(answer(body))) == []


@pytest.mark.parametrize(
    "body",
    [
        part(b"records", size=100),
        part(b"records")[:40],
        part(b"records")[2:].replace(b"--edge", b"edge"),
        part(b"a") + b"\r\n--ed",
        b"\r\n--edge\r\nno header\r\n\r\n",
        b"\r\n--edge\r\nContent-Type: text/html\r\n\r\n",
        part(b"no JSON", PROBLEM) + END,
        bytes(20_000),
    ],
    ids=[
        "cut in a content",
        "cut in a head",
        "no boundary",
        "cut between parts",
        "a line",
        "no length",
        "a problem",
        "zeros",
    ],
)
def test_a_malformed_multipart_answer_counts_as_unreachable(body: bytes) -> None:
    """The consumer tries again."""
    with pytest.raises(QueryUnreachableError):
        list(parts_of(answer(body)))
