"""Dead letters of a group (messages of %DLQ%GROUP), their original topics, and redrives to these.

The progress of a redrive is stored as offsets of the group `GROUP-redrive` on that topic, at which the next one
continues. A redrive that died before it committed a page sends it again; the writer recognises the request ids.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidemark.cli.reading.group_offsets import offsets_of
from tidemark.cli.terminal.service_addresses import topic_path
from tidemark.client import Consumer, Message, Producer, Query, ReceivedMessage
from tidemark.client.consumer.group_member import commit_as_administrator
from tidemark.client.consumer.retry_properties import OF_THE_WAY
from tidemark.errors import ArgumentIllegalError, TopicNotFoundError
from tidemark.format.properties import DLQ_ORIGIN_TOPIC, RETRY_TOPIC
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, RETRY_PREFIX

_PAGE = 500  # dead letters that are sent, acknowledged and then committed together
_POLL_S = 1.0
_DIGEST_LENGTH = 40


class DeadLetters(NamedTuple):
    """The number of a group's dead letters. waiting: those that no redrive has sent yet."""

    group: str
    topic: str
    messages: int
    waiting: int


class RedriveProgress(NamedTuple):
    """Progress of a redrive.

    stored  number of dead letters that it has stored again
    passed  number of those, and of the ones that an earlier redrive had stored
    """

    stored: int
    passed: int


class Redrive(NamedTuple):
    """A request for a redrive. most: None for all that are waiting; to: a topic instead of the original ones."""

    group: str
    most: int | None = None
    to: str | None = None


def dead_letter_topic(group: str) -> str:
    """Return the topic of dead letters of *group*."""
    return f"{DEAD_LETTER_PREFIX}{group}"


def origin_of(properties: Mapping[str, str]) -> str | None:
    """Return the topic that a dead letter was first sent to; None if it is not known."""
    for name in (RETRY_TOPIC, DLQ_ORIGIN_TOPIC):
        topic = properties.get(name)
        if topic and not topic.startswith(RETRY_PREFIX):
            return topic
    return None


def all_dead_letters(service: Query) -> list[DeadLetters]:
    """Return the numbers for every group that has dead letters."""
    names = [topic["topic"] for topic in service.get("/v1/topics")["topics"]]
    groups = [name.removeprefix(DEAD_LETTER_PREFIX) for name in names if name.startswith(DEAD_LETTER_PREFIX)]
    return [found for group in groups if (found := dead_letters_of(service, group)).messages]


def dead_letters_of(service: Query, group: str) -> DeadLetters:
    """Return the numbers for one group. Raises TopicNotFoundError if it never had dead letters."""
    topic = dead_letter_topic(group)
    done = _redriven(service, group)
    messages = waiting = 0
    for queue in _queues(service, group):
        messages += queue["max_offset"] - queue["min_offset"]
        waiting += max(0, queue["max_offset"] - max(queue["min_offset"], done.get(queue["queue_id"], 0)))
    return DeadLetters(group, topic, messages, waiting)


def redrive(
    service: Query,
    writer: str | None,
    asked: Redrive,
    *,
    on_acknowledged: Callable[[RedriveProgress], None] = lambda _: None,
) -> RedriveProgress:
    """Send waiting dead letters back, page by page. Each page is committed before the next one is sent.

    Raises ArgumentIllegalError for a dead letter without an original topic, and exceptions of the producer.
    """
    topic = dead_letter_topic(asked.group)
    queues = _queues(service, asked.group)
    ends = {(topic, queue["queue_id"]): queue["max_offset"] for queue in queues if queue["max_offset"]}
    waiting = dead_letters_of(service, asked.group).waiting
    left = waiting if asked.most is None else min(waiting, asked.most)
    done = RedriveProgress(0, 0)
    if not left:
        return done
    name = redrive_group(asked.group)
    furthest = Furthest(service, asked.group)
    with (
        Consumer(queues=ends, group=name, auto_commit=False, url=service.url, out_of_range="earliest") as consumer,
        Producer(writer) as producer,
    ):
        while done.passed < left and not _is_at_end(consumer, ends):
            page = consumer.poll(_POLL_S, max_messages=min(_PAGE, left - done.passed))
            stored = _send(producer, page, asked.to, furthest)
            consumer.commit()
            furthest.advance(page)
            done = RedriveProgress(done.stored + stored, done.passed + len(page))
            on_acknowledged(done)
    return done


class Furthest:
    """The greatest offsets up to which dead letters were ever sent back: offsets of the group `GROUP-redriven`.

    Below it, a dead letter is sent again because an operator has reset `GROUP-redrive`, so it is stored once more. From
    it on, a dead letter that the writer recognises was sent by a redrive that died before its commit.
    """

    def __init__(self, service: Query, group: str) -> None:
        self._service = service
        self._group = f"{group}-redriven"
        self._offsets = offsets_of(service, self._group, dead_letter_topic(group))
        for queue_id, offset in _redriven(service, group).items():  # after a redrive that died between its two commits
            self._offsets[queue_id] = max(offset, self._offsets.get(queue_id, 0))
        self._run = uuid.uuid4().hex

    def request_id(self, dead: ReceivedMessage) -> str:
        """Return an id that is fixed for the first send of this dead letter, and new for each later one."""
        place = (*dead.queue, dead.queue_offset, dead.physical_offset, dead.store_timestamp_ms, dead.store_host)
        is_again = dead.queue_offset < self._offsets.get(dead.queue_id, 0)
        facts = (*place, self._run) if is_again else place
        digest = hashlib.sha256("\n".join(map(str, facts)).encode()).hexdigest()
        return f"redrive-{digest[:_DIGEST_LENGTH]}"

    def advance(self, page: list[ReceivedMessage]) -> None:
        """Commit that *page* was sent."""
        ends = {dead.queue: dead.queue_offset + 1 for dead in page}  # each queue's messages are in order
        further = {queue: end for queue, end in ends.items() if end > self._offsets.get(queue.queue_id, 0)}
        if further:
            commit_as_administrator(self._service, self._group, further.items())
            self._offsets |= {queue.queue_id: end for queue, end in further.items()}


def redrive_group(group: str) -> str:
    """Return the group whose offsets are the progress of redrives of *group*."""
    return f"{group}-redrive"


def _is_at_end(consumer: Consumer, ends: Mapping[tuple[str, int], int]) -> bool:
    """Return True at the end of all queues, even if the last records are damaged and yield no message."""
    positions = ((consumer.position(queue), end) for queue, end in ends.items())
    return all(position is not None and position >= end for position, end in positions)


def _send(producer: Producer, page: list[ReceivedMessage], to: str | None, furthest: Furthest) -> int:
    """Send all of *page* and return how many were stored. Raise the first failure once all are answered."""
    messages = [_as_first_sent(dead, to) for dead in page]
    futures = [
        producer.send_async(message, request_id=furthest.request_id(dead))
        for message, dead in zip(messages, page, strict=True)
    ]
    for future in futures:
        future.exception()
    return sum(not future.result().duplicate for future in futures)


def _as_first_sent(dead: ReceivedMessage, to: str | None) -> Message:
    topic = to or origin_of(dead.properties)
    if topic is None:
        raise ArgumentIllegalError(
            "the original topic of a dead letter is not known: give --to",
            topic=dead.topic,
            queue_id=dead.queue_id,
            queue_offset=dead.queue_offset,
        )
    properties = {name: value for name, value in dead.properties.items() if name not in OF_THE_WAY}
    return Message(topic, dead.body, tag=dead.tag, keys=dead.keys, properties=properties, flag=dead.flag)


def _queues(service: Query, group: str) -> list[dict[str, Any]]:
    try:
        queues: list[dict[str, Any]] = service.get(topic_path(dead_letter_topic(group)))["queues"]
    except TopicNotFoundError as error:
        raise TopicNotFoundError(f"group {group} has no dead letters", group=group) from error
    return queues


def _redriven(service: Query, group: str) -> dict[int, int]:
    """Return the progress of redrives, by queue id."""
    return offsets_of(service, redrive_group(group), dead_letter_topic(group))
