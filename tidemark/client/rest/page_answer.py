"""The query service's answer for one queue: a separate answer, or a part of an answer for many queues."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, cast

import orjson

from tidemark.client.answers import PullAnswer
from tidemark.client.received_message import JSON, PulledPage, TopicQueue, pulled_page
from tidemark.client.rest.connections import Answer
from tidemark.client.rest.multipart_answer import parts_of
from tidemark.client.rest.problems import Json, error_of, require_success

if TYPE_CHECKING:
    from tidemark.client.rest.arrow_page import TablePage


class HttpFetched(NamedTuple):
    """One answer. Its methods raise the StoreError with which the pull was refused."""

    queue: TopicQueue
    answer: Answer

    def content(self) -> PullAnswer:
        """Return the content of a JSON answer."""
        content: PullAnswer = orjson.loads(require_success(self.answer).body)
        return content

    def page(self) -> PulledPage:
        """Return the JSON answer as messages."""
        return pulled_page(self.queue, self.content())

    def table(self) -> TablePage:
        """Return the table of an Arrow answer."""
        from tidemark.client.rest.arrow_page import table_page

        return table_page(self.queue, self.answer)


class JsonFetched(NamedTuple):
    """One queue's entry in a JSON document about many queues. Like HttpFetched, but it has no table."""

    queue: TopicQueue
    found: Json

    def content(self) -> PullAnswer:
        """Return the page, or raise the error of the refused pull."""
        if "reason" in self.found:
            raise error_of(self.found, self.found["status"])
        return cast(PullAnswer, self.found)

    def page(self) -> PulledPage:
        """Return the entry as messages."""
        return pulled_page(self.queue, self.content())

    def table(self) -> TablePage:
        """Raise TypeError."""
        raise TypeError("a JSON answer has no table: request Arrow")


def fetched_of(answer: Answer, accept: str) -> Iterator[HttpFetched | JsonFetched]:
    """Yield the answer for each queue in the answer to a pull of many. Raises QueryUnreachableError for a bad body."""
    if answer.status == HTTPStatus.NO_CONTENT:
        return
    if accept == JSON:
        for found in orjson.loads(answer.body)["answers"]:
            yield JsonFetched(TopicQueue(found["topic"], found["queue_id"]), found)
    else:
        for part in parts_of(answer):
            yield HttpFetched(part.queue, part.answer)
