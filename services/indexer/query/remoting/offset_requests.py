"""OffsetRequests: offsets of queues (29 to 32) and of groups (14, 15)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tidemark.access.right import READING, Action, on_group, on_topic
from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.read.lookup.offset_by_time import Boundary, offset_by_time_as_broker, unit_time
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting.offset_answers import OFFSET_ANSWER, STORE_TIME_ANSWER, OffsetAnswer, StoreTimeAnswer
from tidemark.remoting.offsets import (
    MAX_OFFSET,
    QUERY_CONSUMER_OFFSET,
    QUEUE_REQUEST,
    SEARCH_OFFSET,
    UPDATE_CONSUMER_OFFSET,
)
from tidemark.remoting_server.exchange import Exchange, Handler

from ..state.service_state import ServiceState
from .offset_commits import OffsetCommits, offset_to_commit

_NONE = -1  # store time of an empty queue

Look = Callable[[QueueReader, QueueBounds], int]


class OffsetRequests:
    """Answers requests for offsets."""

    def __init__(self, state: ServiceState, commits: OffsetCommits) -> None:
        self._state = state
        self._commits = commits
        self._unanswered: dict[tuple[str, str, int], int] = {}  # the last offsets whose writes are in work
        self._writing: set[asyncio.Task[None]] = set()

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {
            RequestCode.QUERY_CONSUMER_OFFSET: self._group_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._commit,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search,
            RequestCode.GET_MAX_OFFSET: self._max_offset,
            RequestCode.GET_MIN_OFFSET: self._min_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self._earliest,
        }

    # -- queues ---------------------------------------------------------------------------------------------------

    async def _max_offset(self, exchange: Exchange) -> None:
        asked = MAX_OFFSET.read(exchange.frame.fields)
        offset = await self._look(exchange, asked.topic, asked.queue_id, lambda _, bounds: max(bounds.max_offset, 0))
        _answer_offset(exchange, offset)

    async def _min_offset(self, exchange: Exchange) -> None:
        asked = QUEUE_REQUEST.read(exchange.frame.fields)
        offset = await self._look(exchange, asked.topic, asked.queue_id, lambda _, bounds: max(bounds.min_offset, 0))
        _answer_offset(exchange, offset)

    async def _search(self, exchange: Exchange) -> None:
        asked = SEARCH_OFFSET.read(exchange.frame.fields)
        log, boundary = self._state.store.log, Boundary(asked.boundary_type.lower())

        def find(queue: QueueReader, bounds: QueueBounds) -> int:
            return offset_by_time_as_broker(queue, log, bounds, asked.timestamp, boundary)

        _answer_offset(exchange, await self._look(exchange, asked.topic, asked.queue_id, find))

    async def _earliest(self, exchange: Exchange) -> None:
        asked = QUEUE_REQUEST.read(exchange.frame.fields)
        log = self._state.store.log

        def find(queue: QueueReader, bounds: QueueBounds) -> int:
            units = bounds.units
            return unit_time(queue, log, units.first) if units.first < units.end else _NONE

        timestamp = await self._look(exchange, asked.topic, asked.queue_id, find, otherwise=_NONE)
        exchange.answer(fields=STORE_TIME_ANSWER.write(StoreTimeAnswer(timestamp)))

    async def _look(self, exchange: Exchange, topic: str, queue_id: int, find: Look, *, otherwise: int = 0) -> int:
        """Return what *find* returns for the queue; *otherwise* if there is none, as a broker does."""
        exchange.caller.require(on_topic(topic, *READING))
        store = self._state.store

        def look() -> int:
            try:
                queue = store.queue(topic, queue_id)
            except (TopicNotFoundError, QueueIllegalError):
                return otherwise
            return find(queue, store.bounds(queue, store.watermark()))

        return await self._state.reads.read_in_place(look)

    # -- groups ---------------------------------------------------------------------------------------------------

    async def _group_offset(self, exchange: Exchange) -> None:
        asked = QUERY_CONSUMER_OFFSET.read(exchange.frame.fields)
        group, topic, queue_id = asked.consumer_group, asked.topic, asked.queue_id
        exchange.caller.require(on_group(group, *READING))
        offset = self._unanswered.get((group, topic, queue_id))
        if offset is None:
            offset = self._commits.get(group, topic, queue_id)
        if offset is None:
            offset = self._state.offsets.get(group, topic, queue_id)
        if offset is not None and self._exists(topic):
            first = self._state.store.first_offset(topic, queue_id)
            _answer_offset(exchange, max(offset, first))  # it may be of a deleted topic of this name
        elif asked.set_zero_if_not_found is not False and await self._begins_at_zero(topic, queue_id):
            _answer_offset(exchange, 0)
        else:
            remark = f"group {group} has no offset in queue {queue_id} of topic {topic}"
            exchange.answer(ResponseCode.QUERY_NOT_FOUND, remark=remark)

    def _exists(self, topic: str) -> bool:
        try:
            self._state.store.topic(topic)
        except TopicNotFoundError:
            return False
        return True

    async def _begins_at_zero(self, topic: str, queue_id: int) -> bool:
        """Return True if the queue exists and has lost no message: then a broker starts a new group at 0."""
        store = self._state.store

        def look() -> bool:
            try:
                queue = store.queue(topic, queue_id)
            except (TopicNotFoundError, QueueIllegalError):
                return False
            return store.bounds(queue, store.watermark()).min_offset <= 0

        return await self._state.reads.read_in_place(look)

    def _commit(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        asked = UPDATE_CONSUMER_OFFSET.read(exchange.frame.fields)
        exchange.caller.require(on_group(asked.consumer_group, Action.SUB, Action.UPDATE))
        offset = offset_to_commit(asked.consumer_group, asked.topic, asked.queue_id, asked.commit_offset)
        if exchange.frame.is_one_way:
            self._commits.put(offset)
            exchange.answer()
            return None
        key = (offset.group, offset.topic, offset.queue_id)
        self._unanswered[key] = offset.offset
        # Go's client does not wait for the answer: others read the offset at once, and the connection may have ended.
        writing = asyncio.create_task(self._commits.put_now(offset))
        self._writing.add(writing)
        writing.add_done_callback(lambda done: self._written(key, offset.offset, done))
        return self._commit_now(exchange, writing)

    def _written(self, key: tuple[str, str, int], offset: int, done: asyncio.Task[None]) -> None:
        self._writing.discard(done)
        if self._unanswered.get(key) == offset:
            del self._unanswered[key]
        if not done.cancelled():
            done.exception()  # it is the answer, which a closed connection does not take

    async def close(self) -> None:
        """Wait for the writes in work."""
        await asyncio.gather(*self._writing, return_exceptions=True)

    async def _commit_now(self, exchange: Exchange, writing: asyncio.Task[None]) -> None:
        await asyncio.shield(writing)
        exchange.answer()


def _answer_offset(exchange: Exchange, offset: int) -> None:
    exchange.answer(fields=OFFSET_ANSWER.write(OffsetAnswer(offset)))
