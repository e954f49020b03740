"""Dead letters of a group: messages of %DLQ%GROUP, where each came from, and the way back there.

How far a redrive came is kept as offsets of the group `GROUP-redrive` on that topic, so that the next one goes on
behind it. A redrive that died before it could say so sends the same again, which the writer knows by the request ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidemark.cli.addresses import topic_path
from tidemark.cli.group import offsets_of
from tidemark.client import Consumer, Message, Producer, Query, ReceivedMessage
from tidemark.client.retry_properties import DLQ_ORIGIN_TOPIC, OF_THE_WAY, RETRY_TOPIC
from tidemark.errors import ArgumentIllegalError, TopicNotFoundError
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, RETRY_PREFIX

_PAGE = 500  # sent, acknowledged, and then put on record
_POLL_S = 1.0


class DeadLetters(NamedTuple):
    """How many a group has. waiting: those that no redrive has sent yet."""

    group: str
    topic: str
    messages: int
    waiting: int


class Redrive(NamedTuple):
    """What to send back. most: None for all that wait; to: a topic instead of the one each came from."""

    group: str
    most: int | None = None
    to: str | None = None


def dead_letter_topic(group: str) -> str:
    """Where dead letters of *group* lie."""
    return f"{DEAD_LETTER_PREFIX}{group}"


def origin_of(properties: Mapping[str, str]) -> str | None:
    """The topic that a dead letter was first sent to; None where it does not tell."""
    for name in (RETRY_TOPIC, DLQ_ORIGIN_TOPIC):
        topic = properties.get(name)
        if topic and not topic.startswith(RETRY_PREFIX):
            return topic
    return None


def all_dead_letters(service: Query) -> list[DeadLetters]:
    """Of every group that has some."""
    names = [topic["topic"] for topic in service.get("/v1/topics")["topics"]]
    groups = [name.removeprefix(DEAD_LETTER_PREFIX) for name in names if name.startswith(DEAD_LETTER_PREFIX)]
    return [found for group in groups if (found := dead_letters_of(service, group)).messages]


def dead_letters_of(service: Query, group: str) -> DeadLetters:
    """Of one group; TopicNotFoundError where it never had any."""
    topic = dead_letter_topic(group)
    done = _redriven(service, group)
    messages = waiting = 0
    for queue in _queues(service, group):
        messages += queue["max_offset"] - queue["min_offset"]
        waiting += max(0, queue["max_offset"] - max(queue["min_offset"], done.get(queue["queue_id"], 0)))
    return DeadLetters(group, topic, messages, waiting)


def redrive(
    service: Query, writer: str | None, asked: Redrive, *, on_acknowledged: Callable[[int], None] = lambda _: None
) -> int:
    """Send those that wait now back, page by page; how many. Each page is on record before the next one is sent.

    raises ArgumentIllegalError for a dead letter that does not tell where it came from, and what sending raises
    """
    topic = dead_letter_topic(asked.group)
    queues = _queues(service, asked.group)
    ends = {(topic, queue["queue_id"]): queue["max_offset"] for queue in queues if queue["max_offset"]}
    waiting = dead_letters_of(service, asked.group).waiting
    left = waiting if asked.most is None else min(waiting, asked.most)
    if not left:
        return 0
    sent = 0
    name = redrive_group(asked.group)
    with (
        Consumer(queues=ends, group=name, auto_commit=False, url=service.url, out_of_range="earliest") as consumer,
        Producer(writer) as producer,
    ):
        while sent < left and not _is_at_end(consumer, ends):
            page = consumer.poll(_POLL_S, max_messages=min(_PAGE, left - sent))
            _send(producer, page, asked.to)
            consumer.commit()
            sent += len(page)
            on_acknowledged(len(page))
    return sent


def redrive_group(group: str) -> str:
    """Whose offsets tell how far dead letters of *group* were sent back."""
    return f"{group}-redrive"


def _is_at_end(consumer: Consumer, ends: Mapping[tuple[str, int], int]) -> bool:
    """Also where the last records are damaged, and no message comes of them."""
    positions = ((consumer.position(queue), end) for queue, end in ends.items())
    return all(position is not None and position >= end for position, end in positions)


def _send(producer: Producer, page: list[ReceivedMessage], to: str | None) -> None:
    """All of them, or the first failure is raised once all are answered."""
    messages = [_as_first_sent(dead, to) for dead in page]
    futures = [
        producer.send_async(message, request_id=_request_id(dead)) for message, dead in zip(messages, page, strict=True)
    ]
    for future in futures:
        future.exception()
    for future in futures:
        future.result()


def _as_first_sent(dead: ReceivedMessage, to: str | None) -> Message:
    topic = to or origin_of(dead.properties)
    if topic is None:
        raise ArgumentIllegalError(
            "a dead letter does not tell its topic: give --to",
            topic=dead.topic,
            queue_id=dead.queue_id,
            queue_offset=dead.queue_offset,
        )
    properties = {name: value for name, value in dead.properties.items() if name not in OF_THE_WAY}
    return Message(topic, dead.body, tag=dead.tag, keys=dead.keys, properties=properties, flag=dead.flag)


def _request_id(dead: ReceivedMessage) -> str:
    """The same whenever this dead letter is sent; it becomes the message's id, and is short however often it dies."""
    return f"redrive-{dead.offset_msg_id or dead.message_id}"[:255]


def _queues(service: Query, group: str) -> list[dict[str, Any]]:
    try:
        queues: list[dict[str, Any]] = service.get(topic_path(dead_letter_topic(group)))["queues"]
    except TopicNotFoundError as error:
        raise TopicNotFoundError(f"group {group} has no dead letters", group=group) from error
    return queues


def _redriven(service: Query, group: str) -> dict[int, int]:
    """By queue id, how far it was sent back."""
    return offsets_of(service, redrive_group(group), dead_letter_topic(group))
