"""What the query service answered for one queue: an answer of its own, or its part of the answer for many."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import orjson

from tidemark.client.received_message import JSON, PulledPage, TopicQueue, pulled_page
from tidemark.client.rest.connections import Answer
from tidemark.client.rest.multipart_answer import parts_of
from tidemark.client.rest.problems import Json, error_of, require_success

if TYPE_CHECKING:
    from tidemark.client.rest.arrow_page import TablePage


class HttpFetched(NamedTuple):
    """One answer. Its methods raise the StoreError that the pull was refused with."""

    queue: TopicQueue
    answer: Answer

    def content(self) -> Json:
        """Of a JSON answer."""
        content: Json = orjson.loads(require_success(self.answer).body)
        return content

    def page(self) -> PulledPage:
        """The same, as messages."""
        return pulled_page(self.queue, self.content())

    def table(self) -> TablePage:
        """Of an Arrow answer."""
        from tidemark.client.rest.arrow_page import table_page

        return table_page(self.queue, self.answer)


class JsonFetched(NamedTuple):
    """One queue of a JSON document about many. As HttpFetched; it holds no table."""

    queue: TopicQueue
    found: Json

    def content(self) -> Json:
        """The page, or what was refused."""
        if "reason" in self.found:
            raise error_of(self.found, self.found["status"])
        return self.found

    def page(self) -> PulledPage:
        """As messages."""
        return pulled_page(self.queue, self.content())

    def table(self) -> TablePage:
        """TypeError."""
        raise TypeError("a JSON answer holds no table")


def fetched_of(answer: Answer, accept: str) -> Iterator[HttpFetched | JsonFetched]:
    """Of each queue that the answer to a pull of many tells of. QueryUnreachableError for bytes that are no parts."""
    if answer.status == HTTPStatus.NO_CONTENT:
        return
    if accept == JSON:
        for found in orjson.loads(answer.body)["answers"]:
            yield JsonFetched(TopicQueue(found["topic"], found["queue_id"]), found)
    else:
        for part in parts_of(answer):
            yield HttpFetched(part.queue, part.answer)
