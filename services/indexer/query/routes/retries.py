"""Messages that a group sends back: finds each in the log and forwards it to the writer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from tidemark.errors import (
    ArgumentIllegalError,
    CorruptMessageError,
    Fact,
    MessageNotFoundError,
    MessageNotYetVisibleError,
    OffsetTooSmallError,
    StoreError,
    TlsFailedError,
    WriterUnreachableError,
)
from tidemark.format.message import MessageArray
from tidemark.format.message_id import decode_message_id
from tidemark.read.lookup.record_lookup import message_of_id
from tidemark.read.pull import PulledPart, PullRequest, PullStatus, pull
from tidemark.read.store_reader import StoreReader

from ..schema.request_bodies import RetriedMessage, RetryBody
from ..state.writer_client import SentBackMessage, WriterForward
from ..web.problems import of_store_error

_ID_HINT = (
    "message_id: expected an offset message id, 32 or 56 hex digits with -N for message N of an inner batch; "
    "name a message with another id by topic, queue_id and queue_offset"
)


Found = SentBackMessage | StoreError


def find_originals(store: StoreReader, messages: Sequence[RetriedMessage]) -> list[Found]:
    """Return the place of each message, or the reason why there is none."""
    return [_found(store, message) for message in messages]


def _found(store: StoreReader, message: RetriedMessage) -> Found:
    try:
        if message.message_id is not None:
            return _by_id(store, message.message_id)
        return _by_place(store, message)
    except StoreError as error:
        return error


def _by_id(store: StoreReader, text: str) -> SentBackMessage:
    try:
        message_id, element = decode_message_id(text)
    except ValueError:
        raise ArgumentIllegalError(_ID_HINT, argument="message_id", message_id=text) from None
    part = message_of_id(store, store.watermark(), message_id, element)
    if len(part.messages) > 1:
        raise ArgumentIllegalError(
            f"{text} is an inner batch of {len(part.messages)} messages: name one of them, as {text}-0",
            argument="message_id",
            message_id=text,
        )
    return _original(part)


def _by_place(store: StoreReader, message: RetriedMessage) -> SentBackMessage:
    assert message.topic is not None
    assert message.queue_id is not None
    assert message.queue_offset is not None
    queue = store.queue(message.topic, message.queue_id)
    watermark = store.watermark()
    bounds = store.bounds(queue, watermark)
    facts: dict[str, Fact] = {
        "topic": queue.topic,
        "queue_id": queue.queue_id,
        "queue_offset": message.queue_offset,
    }
    result = pull(queue, store.log, bounds, PullRequest(message.queue_offset, max_messages=1, max_bytes=1))
    if result.status is PullStatus.OFFSET_TOO_SMALL:
        raise OffsetTooSmallError(
            f"offset {message.queue_offset} is below the queue's minimum, {bounds.min_offset}",
            **facts,
            min_offset=bounds.min_offset,
        )
    if message.queue_offset >= bounds.max_offset and watermark.lag_bytes > 0:
        raise MessageNotYetVisibleError(
            f"offset {message.queue_offset} is not visible yet: the queue's visible end is {bounds.max_offset}", **facts
        )
    for skip in result.skipped:
        if skip.queue_offset == message.queue_offset:
            raise CorruptMessageError(
                f"the record at offset {message.queue_offset} is damaged: {skip.reason}",
                reason_of_damage=skip.reason,
                **facts,
            )
    for part in result.parts:
        if int(part.messages["queue_offset"][0]) == message.queue_offset:
            return _original(part)._replace(topic=queue.topic)
    raise MessageNotFoundError(f"there is no message at offset {message.queue_offset}", **facts)


def _original(part: PulledPart) -> SentBackMessage:
    """Return the place of the first message of *part*."""
    messages: MessageArray = part.messages
    record = part.records.rows[int(messages["record"][0])]
    at, inner = int(record["topic_at"]), int(messages["inner"][0])
    return SentBackMessage(
        part.records.buffer[at : at + int(record["topic_length"])].tobytes().decode("utf-8", "replace"),
        int(record["queue_id"]),
        int(messages["queue_offset"][0]),
        int(messages["physical_offset"][0]),
        inner - 1 if inner else None,
    )


async def send_back(
    writer: WriterForward, group: str, body: RetryBody, found: Sequence[Found], *, authorization: str | None
) -> list[dict[str, Any]]:
    """Send each original back; return one result per message of the request, in its order.

    Raises:
        WriterUnreachableError, TlsFailedError: the writer answered none of the calls.
    """

    async def send(one: Found) -> Found | tuple[SentBackMessage, dict[str, Any]]:
        if isinstance(one, StoreError):
            return one
        try:
            return one, await writer.send_back(
                group,
                one,
                delay_level=body.delay_level,
                max_reconsume_times=body.max_reconsume_times,
                authorization=authorization,
            )
        except StoreError as error:
            return error

    answers = await asyncio.gather(*map(send, found))
    failures = [answer for answer in answers if isinstance(answer, WriterUnreachableError | TlsFailedError)]
    if failures and len(failures) == sum(isinstance(one, SentBackMessage) for one in found):
        raise failures[0]
    return [_result(message, one, answer) for message, one, answer in zip(body.messages, found, answers, strict=True)]


def _result(message: RetriedMessage, found: Found, answer: Any) -> dict[str, Any]:
    asked = message.model_dump(exclude_none=True)
    if isinstance(answer, StoreError):
        problem = orjson.loads(bytes(of_store_error(answer).body))
        return {**asked, "sent_back": None, "problem": problem}
    original, sent_back = answer
    place = {"topic": original.topic, "queue_id": original.queue_id, "queue_offset": original.queue_offset}
    return {**asked, **place, "sent_back": sent_back, "problem": None}
