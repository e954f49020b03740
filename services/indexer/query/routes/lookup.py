"""Lookups of messages by id, by physical offset and by key, and of a topic by store time."""

from __future__ import annotations

import functools
import time
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from tidemark.access.right import READING, on_topic
from tidemark.errors import ArgumentIllegalError, MessageNotYetVisibleError
from tidemark.format.message_id import OffsetMessageId, decode_message_id
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key, find_by_key_as_broker
from tidemark.read.lookup.record_lookup import message_at, message_of_id
from tidemark.read.lookup.topic_scan import MessagePlace, TopicQuery, scan_topic
from tidemark.read.messages.body import AnswerFullError, BodyEncoding, BodyRoom
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.pull import PulledPart
from tidemark.read.watermark import Watermark

from ..pull.pull_response import json_response, skipped_json
from ..schema.position import position_json
from ..schema.query_arguments import (
    MAX_I8,
    MessageArguments,
    SearchArguments,
    Semantics,
    TopicName,
    described,
    read_arguments,
)
from ..schema.responses import MessagesAnswer, ProblemAnswer, SearchAnswer
from ..schema.search_cursor import decode_cursor, encode_cursor, search_name
from ..state.service_state import ServiceState, state_of
from ..web.plain_route import PlainRoute
from ..web.route_access import caller_of

router = APIRouter(tags=["messages"], route_class=PlainRoute)
_PROBLEM: dict[str, Any] = {"model": ProblemAnswer}
_FAILURES: dict[int | str, dict[str, Any]] = dict.fromkeys((404, 410, 422, 500), _PROBLEM)
_HINT = (
    "expected an offset message id: 32 or 56 hex digits, with -N for message N of an inner batch; "
    "look up a UNIQ_KEY by /v1/topics/{topic}/messages?unique_key="
)


async def _look_up(
    request: Request,
    physical_offset: int,
    wait_ms: int,
    message_id: OffsetMessageId | None = None,
    element: int | None = None,
) -> Any:
    """Return (part, watermark) of the record; wait for it if *wait_ms* is not 0."""
    state = state_of(request)
    deadline = time.monotonic() + min(wait_ms, state.settings.query_max_wait_ms) / 1000

    def look() -> tuple[PulledPart, Watermark]:
        watermark = state.store.watermark()
        if message_id is not None:
            return message_of_id(state.store, watermark, message_id, element), watermark
        return message_at(state.store, watermark, physical_offset), watermark

    while True:
        try:
            return await state.reads.read_in_place(look)
        except MessageNotYetVisibleError:
            is_ready = await state.watcher.wait_for_request(
                request, lambda seen: seen.physical_offset > physical_offset, deadline
            )
            if not is_ready:
                raise


def _messages_response(
    request: Request, part: PulledPart, watermark: Watermark, arguments: MessageArguments
) -> Response:
    state = state_of(request)
    row = part.records.rows[0]
    at = int(row["topic_at"])
    topic = part.records.buffer[at : at + int(row["topic_length"])].tobytes().decode("utf-8", "replace")
    caller = caller_of(request)
    if not caller.is_open:
        caller.require(on_topic(topic, *READING))
    as_broker = arguments.semantics is Semantics.ROCKETMQ
    room = BodyRoom(state.settings.query_max_body_bytes, keep_rest_stored=True)
    return json_response(
        {
            "store": state.settings.store_name,
            "topic": topic,
            "queue_id": int(row["queue_id"]),
            **position_json(watermark),
            "messages": message_rows(part, arguments.body_encoding, as_broker=as_broker, room=room),
        }
    )


@router.get(
    "/v1/messages/at/{physical_offset}",
    summary="Messages of the record at a physical offset",
    response_model=MessagesAnswer,
    responses=_FAILURES,
    openapi_extra=described(MessageArguments),
)
async def message_by_place(request: Request, physical_offset: Annotated[int, Path(ge=0, le=MAX_I8)]) -> Response:
    """Return one message, or all messages of an inner batch.

    404 `NOT_YET_VISIBLE`: the offset is above the watermark; `wait_ms` waits for the message. 404 `NOT_FOUND`: no
    message begins at this offset. 410: the offset is below the log's minimum, so the message is deleted.
    """
    arguments = read_arguments(request, MessageArguments)
    part, watermark = await _look_up(request, physical_offset, arguments.wait_ms)
    return _messages_response(request, part, watermark, arguments)


@router.get(
    "/v1/messages/{offset_msg_id}",
    summary="Messages by offset message id",
    response_model=MessagesAnswer,
    responses=_FAILURES,
    openapi_extra=described(MessageArguments),
)
async def message_by_id(request: Request, offset_msg_id: str) -> Response:
    """Return the messages of the record that the id names. The store host in the id must be the record's.

    An id that ends with a hyphen and a number names one message of an inner batch; the answer has this message only.
    """
    arguments = read_arguments(request, MessageArguments)
    try:
        message_id, element = decode_message_id(offset_msg_id)
        if message_id.physical_offset < 0:
            raise ValueError("negative")
    except ValueError:
        raise ArgumentIllegalError(_HINT, argument="offset_msg_id") from None
    part, watermark = await _look_up(request, message_id.physical_offset, arguments.wait_ms, message_id, element)
    return _messages_response(request, part, watermark, arguments)


@router.get(
    "/v1/topics/{topic}/messages",
    summary="Search a topic by key or unique key, or read it by store time",
    response_model=SearchAnswer,
    responses={404: _PROBLEM, 422: _PROBLEM, 503: _PROBLEM},
    openapi_extra=described(SearchArguments),
)
async def search(request: Request, topic: TopicName) -> Response:
    """Return a page of messages of all queues, in the order of the log.

    Without a key, the search returns all messages in the range of store times. Keys inside inner batches are not in
    the index. `next_cursor` leads to the next page. It may come with an empty page, and it stays valid while messages
    are appended.
    """
    arguments = read_arguments(request, SearchArguments)
    state = state_of(request)
    state.require_store(arguments.store)
    if arguments.key is not None and arguments.unique_key is not None:
        raise ArgumentIllegalError("key and unique_key are both set: send one of them", argument="unique_key")
    search_now = functools.partial(_search, state, topic, arguments)
    if arguments.key is None and arguments.unique_key is None:
        return await state.reads.read(search_now)
    return await state.reads.read_in_place(search_now)


def _search(state: ServiceState, topic: str, arguments: SearchArguments) -> Response:
    """Return a page, with fewer messages if the bodies of all would exceed query_max_body_bytes."""
    state.store.topic(topic)
    limit = min(arguments.limit or state.settings.query_default_limit, state.settings.query_max_limit)
    while True:
        room = BodyRoom(state.settings.query_max_body_bytes, keep_rest_stored=limit <= 1)
        try:
            return _search_page(state, topic, arguments, limit, room)
        except AnswerFullError:
            limit = max(1, limit // 2)


def _search_page(state: ServiceState, topic: str, arguments: SearchArguments, limit: int, room: BodyRoom) -> Response:
    settings = state.settings
    watermark = state.store.watermark()
    as_broker = arguments.semantics is Semantics.ROCKETMQ
    name = search_name(
        topic,
        arguments.key,
        arguments.unique_key,
        from_ms=arguments.from_ms,
        to_ms=arguments.to_ms,
        as_broker=as_broker,
    )
    after = None if arguments.cursor is None else decode_cursor(name, arguments.cursor)
    key = arguments.key or arguments.unique_key
    if key is None:
        page = scan_topic(
            state.store,
            watermark,
            TopicQuery(
                topic, arguments.from_ms, arguments.to_ms, limit, after=None if after is None else MessagePlace(*after)
            ),
        )
        parts, skipped = page.parts, page.skipped
        cursor = None if page.after is None else encode_cursor(name, page.after.physical_offset, page.after.element)
    else:
        query = KeyQuery(
            topic,
            key,
            unique=arguments.key is None,
            from_ms=arguments.from_ms,
            to_ms=arguments.to_ms,
            limit=limit,
            after=-1 if after is None else after[0],
        )
        find = find_by_key_as_broker if as_broker else find_by_key
        found = find(state.store, state.index, watermark, query)
        parts, skipped = found.parts, found.skipped
        cursor = None if found.after is None else encode_cursor(name, found.after)
    return json_response(
        {
            "store": settings.store_name,
            "topic": topic,
            **position_json(watermark),
            "limit": limit,
            "next_cursor": cursor,
            "skipped": skipped_json(skipped),
            "messages": found_rows(parts, arguments.body_encoding, room, as_broker=as_broker),
        }
    )


def found_rows(
    parts: list[PulledPart], encoding: BodyEncoding, room: BodyRoom, *, as_broker: bool = False
) -> list[dict[str, Any]]:
    """Return the messages of *parts* as FoundMessage describes them. Raises AnswerFullError if *room* is too small."""
    messages = []
    for part in parts:
        room.take(sum(part.messages["body_length"].tolist()))
        queue_ids = part.records.rows["queue_id"][part.messages["record"]].tolist()
        rows = message_rows(part, encoding, as_broker=as_broker, room=room)
        messages += [{"queue_id": queue_id, **row} for queue_id, row in zip(queue_ids, rows, strict=True)]
    return messages
