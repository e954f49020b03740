"""Answers of many queues in one (POST /v1/pull): each part an answer of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import NamedTuple

import orjson

from tidemark.client.connections import Answer
from tidemark.client.received import TopicQueue
from tidemark.errors import QueryUnreachableError

_END_OF_HEAD = b"\r\n\r\n"
_LONGEST_HEAD = 16 << 10
_PROBLEM = "application/problem+json"


class Part(NamedTuple):
    """What a pull from *queue* would have been answered with."""

    queue: TopicQueue
    answer: Answer


def parts_of(answer: Answer) -> Iterator[Part]:
    """Of a multipart/mixed *answer*, whose parts all tell their length; none of one without content.

    raises QueryUnreachableError for bytes that are none
    """
    at, body = 0, answer.body
    while at < len(body):
        headers, at = _headers(body, at)
        if headers is None:
            return
        size = int(headers["Content-Length"])
        content = body[at : at + size]
        if len(content) < size:
            raise QueryUnreachableError(f"a part of {size} bytes ends after {len(content)}")
        at += size
        yield Part(
            TopicQueue(headers["Tidemark-Topic"], int(headers["Tidemark-Queue-Id"])),
            Answer(_status(headers, content), headers, content),
        )


def _headers(body: memoryview, at: int) -> tuple[Mapping[str, str] | None, int]:
    """(a part's headers, where its content begins). None behind the last one."""
    head = bytes(body[at : at + _LONGEST_HEAD])
    end = head.find(_END_OF_HEAD)
    boundary, _, lines = head[: max(end, 0)].decode("latin-1").removeprefix("\r\n").partition("\r\n")
    if end < 0:
        if head.endswith(b"--\r\n"):
            return None, len(body)
        raise QueryUnreachableError("a part of the answer has no end of its head")
    if not boundary.startswith("--"):
        raise QueryUnreachableError("a part of the answer begins without its boundary")
    return dict(line.split(": ", 1) for line in lines.split("\r\n")), at + end + len(_END_OF_HEAD)


def _status(headers: Mapping[str, str], content: memoryview) -> int:
    if headers["Content-Type"] != _PROBLEM:
        return HTTPStatus.OK
    status: int = orjson.loads(content)["status"]
    return status
