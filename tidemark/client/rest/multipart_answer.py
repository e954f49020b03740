"""Answers for many queues (POST /v1/pull): multipart, with one answer per queue as a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import NamedTuple

import orjson

from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.connections import Answer
from tidemark.errors import QueryUnreachableError

_END_OF_HEAD = b"\r\n\r\n"
_USUAL_HEAD, _LONGEST_HEAD = 1 << 10, 16 << 10
_PROBLEM = "application/problem+json"


class Part(NamedTuple):
    """The part for *queue*: the answer that a pull of this queue alone would return."""

    queue: TopicQueue
    answer: Answer


def parts_of(answer: Answer) -> Iterator[Part]:
    """Yield the parts of a multipart/mixed *answer*; each part has a Content-Length. None for an empty answer.

    raises QueryUnreachableError if the body is not in this form
    """
    at = 0
    while at < len(answer.body):
        try:
            part, at = _part(answer.body, at)
        except (KeyError, ValueError) as error:
            raise QueryUnreachableError(f"the service's answer is not valid multipart: {error!r}") from None
        if part is None:
            return
        yield part


def _part(body: memoryview, at: int) -> tuple[Part | None, int]:
    """Return the part at *at* (None after the last one) and the start of the next. Raises KeyError, ValueError."""
    headers, start = _headers(body, at)
    if headers is None:
        return None, start
    size = int(headers["Content-Length"])
    content = body[start : start + size]
    if len(content) < size:
        raise ValueError(f"a part of {size} bytes ends after {len(content)}")
    queue = TopicQueue(headers["Tidemark-Topic"], int(headers["Tidemark-Queue-Id"]))
    return Part(queue, Answer(_status(headers, content), headers, content)), start + size


def _headers(body: memoryview, at: int) -> tuple[Mapping[str, str] | None, int]:
    """Return a part's headers (None after the last part) and the start of its content. Raises ValueError."""
    head = bytes(body[at : at + _USUAL_HEAD])
    end = head.find(_END_OF_HEAD)
    if end < 0:
        head = bytes(body[at : at + _LONGEST_HEAD])
        end = head.find(_END_OF_HEAD)
    boundary, _, lines = head[: max(end, 0)].decode("latin-1").removeprefix("\r\n").partition("\r\n")
    if end < 0:
        if head.endswith(b"--\r\n"):
            return None, len(body)
        raise ValueError("the headers of a part have no end")
    if not boundary.startswith("--"):
        raise ValueError("a part does not begin with a boundary")
    return dict([line.split(": ", 1) for line in lines.split("\r\n")]), at + end + len(_END_OF_HEAD)


def _status(headers: Mapping[str, str], content: memoryview) -> int:
    if headers["Content-Type"] != _PROBLEM:
        return HTTPStatus.OK
    status: int = orjson.loads(content)["status"]
    return status
