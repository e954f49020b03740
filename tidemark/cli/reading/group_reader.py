"""Reads a topic as a member of a consumer group, and commits the messages that standard output has taken."""

from __future__ import annotations

import binascii
import datetime
import time
from collections.abc import Mapping
from typing import NamedTuple

from tidemark.cli.reading.message_format import MessageFormat
from tidemark.cli.reading.message_text import Message
from tidemark.cli.reading.queue_places import PlaceKind, StartPlace
from tidemark.cli.terminal.counted_output import CountedOutput
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.stop_request import StopRequest
from tidemark.client import Consumer, ReceivedMessage, TopicQueue
from tidemark.client.consumer.start_offsets import Place
from tidemark.errors import GenerationStaleError

_PAGE = 500
_POLL_S = 0.2  # longest time until a stop request is seen
_ASSIGNMENT_S = 10.0  # time for other members to release queues


class GroupRead(NamedTuple):
    """A request to read as a member.

    most  maximum number of messages; None: no limit
    ends  end of each queue that has messages; None: read without an end
    """

    topic: str
    group: str
    start: StartPlace
    tags: list[str]
    most: int | None
    ends: Mapping[TopicQueue, int] | None


def print_as_member(url: str, asked: GroupRead, form: MessageFormat, stop: StopRequest) -> int:
    """Print messages, and commit each page after it is written. Return the number of messages.

    A message is committed once its last byte is written, also before a stop request or a closed pipe ends the call.
    """
    output = CountedOutput(stop)
    printed = 0
    start = _start(asked.start)
    waited_since = time.monotonic()
    head = form.head
    with Consumer(
        asked.topic, group=asked.group, url=url, start=start, tag=asked.tags or None, auto_commit=False
    ) as consumer:
        while not stop and printed != asked.most:
            page = consumer.poll(
                _POLL_S, max_messages=_PAGE if asked.most is None else min(_PAGE, asked.most - printed)
            )
            if not page:
                output.require_reader()
            elif head:
                output.write(head)
                head = b""
            printed += _print(consumer, page, form, output)
            if asked.ends is not None and _is_at_end(consumer, asked.ends, waited_since):
                break
    return printed


def _print(consumer: Consumer, page: list[ReceivedMessage], form: MessageFormat, output: CountedOutput) -> int:
    """Print *page*, commit the printed messages, and return their number."""
    printed = 0
    ends: dict[tuple[str, int], int] = {}
    try:
        for message in page:
            if not output.write(form.encode(_as_row(message))):
                break
            ends[message.queue] = message.queue_offset + 1
            printed += 1
    finally:
        if ends:
            _commit(consumer, ends)
    return printed


def _commit(consumer: Consumer, ends: Mapping[tuple[str, int], int]) -> None:
    try:
        consumer.commit(ends)
    except GenerationStaleError:
        say("warning: a queue has moved to another member, which prints its last messages again")


def _is_at_end(consumer: Consumer, ends: Mapping[TopicQueue, int], waited_since: float) -> bool:
    """Return True once all queues of this member are read to *ends*, or if it gets none."""
    assigned = consumer.assignment
    if not assigned and time.monotonic() - waited_since > _ASSIGNMENT_S:
        say("the other members of the group read all queues; this one got none")
        return True
    positions = {queue: consumer.position(queue) for queue in assigned if queue in ends}
    return bool(assigned) and all(at is not None and at >= ends[queue] for queue, at in positions.items())


def _start(place: StartPlace) -> Place:
    if place.kind is PlaceKind.TIME:
        return datetime.datetime.fromtimestamp(place.value / 1000, datetime.UTC)
    return "latest" if place.kind is PlaceKind.LATEST else "earliest"


def _as_row(message: ReceivedMessage) -> Message:
    """Return the message with the fields of a REST answer, without its CRC."""
    try:
        body, encoding = message.body.decode(), "utf8"
    except UnicodeDecodeError:
        body, encoding = binascii.b2a_base64(message.body, newline=False).decode(), "base64"
    return {**message.as_dict(), "body": body, "body_encoding": encoding}
