"""LookupRequests: messages by key (12) and by physical offset (33), as stored."""

from __future__ import annotations

from functools import partial

import numpy as np

from tidemark.access.right import READING, Action, on_topic
from tidemark.errors import MessageNotFoundError, OffsetError
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key_as_broker
from tidemark.read.lookup.record_lookup import message_at
from tidemark.read.pull import PulledPart
from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting.frame import Buffer
from tidemark.remoting.offset_answers import QUERY_MESSAGE_ANSWER, QueryMessageAnswer
from tidemark.remoting.offsets import QUERY_MESSAGE, VIEW_MESSAGE, QueryMessage
from tidemark.remoting_server.exchange import Exchange, Handler

from ..state.service_state import ServiceState

_MOST_MESSAGES = 64


class LookupRequests:
    """Answers lookups."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {RequestCode.QUERY_MESSAGE: self._by_key, RequestCode.VIEW_MESSAGE_BY_ID: self._at}

    async def _by_key(self, exchange: Exchange) -> None:
        asked = QUERY_MESSAGE.read(exchange.frame.fields)
        exchange.caller.require(on_topic(asked.topic, *READING))
        parts, last = await self._state.reads.read_in_place(partial(self._find, asked))
        code = ResponseCode.SUCCESS if parts else ResponseCode.QUERY_NOT_FOUND
        remark = "" if parts else f"no message of topic {asked.topic} has this key in this time"
        exchange.answer_parts(code, QUERY_MESSAGE_ANSWER.write(last), parts, remark=remark)

    def _find(self, asked: QueryMessage) -> tuple[list[Buffer], QueryMessageAnswer]:
        state = self._state
        state.store.topic(asked.topic)
        query = KeyQuery(
            asked.topic,
            asked.key,
            unique=asked.is_unique_key,
            from_ms=asked.begin_timestamp,
            to_ms=asked.end_timestamp,
            limit=_MOST_MESSAGES,  # of entries with this hash: some may be of other keys, or not visible yet
        )
        answer = find_by_key_as_broker(state.store, state.index, state.store.watermark(), query)
        headers = [table.header for table in state.index.tables()]
        last = QueryMessageAnswer(
            max((header.end_timestamp for header in headers), default=0),
            max((header.end_physical_offset for header in headers), default=0),
        )
        most_bytes = state.settings.remoting_max_frame_bytes // 2  # clients do not read longer frames
        return [_newest(part, max(asked.max_num, 1), most_bytes) for part in answer.parts], last

    async def _at(self, exchange: Exchange) -> None:
        asked = VIEW_MESSAGE.read(exchange.frame.fields)
        part = await record_for(exchange, self._state, asked.physical_offset, *READING)
        if part is not None:
            exchange.answer_parts(ResponseCode.SUCCESS, {}, [part.records.stored_bytes()])


async def record_for(
    exchange: Exchange, state: ServiceState, physical_offset: int, *actions: Action
) -> PulledPart | None:
    """Return the record at *physical_offset*; without a visible one there, answer that and return None.

    actions: the caller needs the right to one of them in the record's topic. Raises ForbiddenError.
    """

    def look() -> PulledPart:
        return message_at(state.store, state.store.watermark(), physical_offset)

    try:
        part = await state.reads.read_in_place(look)
    except (OffsetError, MessageNotFoundError) as error:
        exchange.answer(ResponseCode.SYSTEM_ERROR, remark=error.message)
        return None
    exchange.caller.require(on_topic(topic_of(part), *actions))
    return part


def topic_of(part: PulledPart) -> str:
    """Return the topic of the first record of *part*."""
    row = part.records.rows[0]
    at = int(row["topic_at"])
    return part.records.buffer[at : at + int(row["topic_length"])].tobytes().decode("utf-8", "replace")


def _newest(part: PulledPart, count: int, most_bytes: int) -> Buffer:
    """Return the newest records with requested messages: at most *count* and *most_bytes*, and at least one."""
    numbers = np.unique(part.messages["record"])[::-1][:count]
    sizes = np.cumsum(part.records.rows["message_size"][numbers].astype(np.int64))
    chosen = np.zeros(len(part.records.rows), np.bool_)
    chosen[numbers[sizes <= max(most_bytes, sizes[0])]] = True
    return part.records.stored_bytes(chosen)
