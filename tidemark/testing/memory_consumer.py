"""MemoryConsumer: `Consumer` for a MemoryLog."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from tidemark.client.consumer.consumer import Offsets, Where
from tidemark.client.consumer.open_page_source import DEFAULT_LIMITS, DEFAULT_TABLE_LIMITS
from tidemark.client.consumer.remoting_pulls import PullLimits
from tidemark.client.consumer.start_offsets import Place
from tidemark.client.message import Message
from tidemark.client.received_message import ReceivedMessage, TopicQueue
from tidemark.client.values import Deserializer, deserializer_of
from tidemark.errors import OffsetOutOfRangeError, TopicNotFoundError
from tidemark.format.topic_name import DEAD_LETTER_PREFIX
from tidemark.testing.memory_topics import Group, MemoryTopics

if TYPE_CHECKING:
    import pyarrow as pa

GLANCE_S = 0.02
"""Seconds for which `consume` waits for a message before it looks at `stop` again."""


class MemoryConsumer:
    """`Consumer` for a MemoryLog: topics, group, queues, start, tag, where, model, value_deserializer, auto_commit and
    max_messages as there."""

    def __init__(
        self,
        log: MemoryTopics,
        topics: str | Iterable[str] = (),
        *,
        group: str | None = None,
        queues: Iterable[tuple[str, int]] = (),
        start: Place = "earliest",
        tag: str | Sequence[str] | None = None,
        where: Where | None = None,
        model: type[Any] | None = None,
        value_deserializer: Deserializer | None = None,
        auto_commit: bool = True,
        max_messages: int | None = None,
    ) -> None:
        self._log = log
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        self._named = [TopicQueue(*queue) for queue in queues]
        if bool(self.topics) == bool(self._named):
            raise ValueError("give either topics or queues: exactly one of the two")
        self._start, self._where = start, where
        self._deserializer = deserializer_of(model, value_deserializer)
        self._tags = {tag} if isinstance(tag, str) else set(tag or ())
        self._auto_commit = auto_commit and group is not None
        self._max_messages = max_messages
        self._positions: dict[TopicQueue, int] = {}
        self._paused: set[TopicQueue] = set()
        self._is_closed = False
        self._ends = {queue: len(log.queue(queue)) for queue in self._wanted()}
        self._group_name = group
        self._group = None if group is None else self._join(group)

    def _join(self, name: str) -> Group:
        """Join the group. The other members first commit what they handed out, as before a queue moves."""
        with self._log.changed:
            group = self._log.groups.setdefault(name, Group([], {}))
            for member in group.members:
                member.commit_if_automatic()
            group.members.append(self)
            return group

    def _wanted(self) -> list[TopicQueue]:
        """Return all queues of the topics, or the named ones."""
        return self._named or [queue for topic in self.topics for queue in self._queues_of(topic)]

    def _queues_of(self, topic: str) -> list[TopicQueue]:
        return [TopicQueue(topic, number) for number in range(self._log.queue_count(topic))]

    def _share(self) -> list[TopicQueue]:
        """Return the queues of this member now: an equal part of each topic's, in the order of joining."""
        if self._group is None or self._named:
            return self._wanted()
        share = []
        for topic in self.topics:
            members = [member for member in self._group.members if topic in member.topics]
            queues, own = self._queues_of(topic), members.index(self)
            size, more = divmod(len(queues), len(members))
            begin = own * size + min(own, more)
            share += queues[begin : begin + size + (own < more)]
        return share

    def _follow(self) -> None:
        """Take over the queues that this member has now, and leave the others."""
        if not self._wanted():
            raise TopicNotFoundError(f"none of the topics exists: {', '.join(self.topics)}", topic=self.topics[0])
        known = self._positions
        self._positions = {queue: known[queue] if queue in known else self._begin(queue) for queue in self._share()}

    def _begin(self, queue: TopicQueue) -> int:
        committed = None if self._group is None else self._group.committed.get(queue)
        if committed is not None:
            return committed
        if self._start == "latest":
            return self._ends.get(queue, 0)
        return self._resolve(queue, self._start)

    def _resolve(self, queue: TopicQueue, place: Place) -> int:
        messages = self._log.queue(queue)
        if isinstance(place, datetime):
            since_ms = place.timestamp() * 1000
            return sum(message.store_timestamp_ms < since_ms for message in messages)
        if isinstance(place, int):
            return place
        if place not in ("earliest", "latest"):
            raise ValueError(f"place must be an offset, a time, 'earliest' or 'latest', not {place!r}")
        return 0 if place == "earliest" else len(messages)

    def poll(self, timeout_s: float = 1.0, *, max_messages: int | None = None) -> list[ReceivedMessage]:
        """Return the next messages; wait up to *timeout_s* for the first; see `Consumer.poll`."""
        most = self._most(DEFAULT_LIMITS) if max_messages is None else max_messages
        if most < 0:
            raise ValueError(f"max_messages is {most}; it must be at least 0")
        if self._is_closed:
            raise ValueError("this consumer is closed")
        with self._log.changed:
            self.commit_if_automatic()
            deadline = time.monotonic() + timeout_s
            while True:
                self._follow()
                found = self._take(most)
                left_s = deadline - time.monotonic()
                if found or not most or left_s <= 0:
                    return found
                self._log.changed.wait(left_s)

    def _take(self, most: int) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        for queue in self._positions:
            messages = self._log.queue(queue)
            if self._positions[queue] > len(messages):
                offset = self._positions[queue]
                raise OffsetOutOfRangeError(
                    f"offset {offset} is above everything committed", **queue._asdict(), requested_offset=offset
                )
            while len(found) < most and queue not in self._paused and self._positions[queue] < len(messages):
                message = messages[self._positions[queue]].replace().read_by(self._deserializer)
                try:
                    is_wanted = self._is_wanted(message)
                except Exception:
                    if found:  # the next `poll` raises it
                        return found
                    raise
                if is_wanted:
                    found.append(message)
                self._positions[queue] += 1
        return found

    def _is_wanted(self, message: ReceivedMessage) -> bool:
        if self._tags and message.tag not in self._tags:
            return False
        if self._where is None:
            return True
        if callable(self._where):
            return self._where(message)
        return self._where.items() <= message.properties.items()

    def poll_table(self, timeout_s: float = 1.0) -> pa.Table | None:
        """Poll a table; see `Consumer.poll_table`."""
        from tidemark.testing.memory_table import messages_table

        if self._where is not None:
            raise ValueError("poll_table does not support `where`: filter the table")
        messages = self.poll(timeout_s, max_messages=self._most(DEFAULT_TABLE_LIMITS))
        return messages_table(messages) if messages else None

    def _most(self, usual: PullLimits) -> int:
        return usual.max_messages if self._max_messages is None else self._max_messages

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while True:
            yield from self.poll(max_messages=1)

    def consume(
        self,
        handler: Callable[[ReceivedMessage], object],
        *,
        workers: int = 8,
        ordered: bool = False,
        max_attempts: int = 16,
        first_delay_level: int = 3,
        writer: str | None = None,
        on_error: Callable[[ReceivedMessage, BaseException], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Call *handler* with each message until *stop* is set; without *stop*, until all messages are handled.

        A failed message is tried again at once, and stored in %DLQ%group after *max_attempts*. workers, ordered,
        first_delay_level and writer have no effect: one message is handled at a time, in this thread.
        """
        self.require_shared_group()
        while stop is None or not stop.is_set():
            messages = self.poll(timeout_s=0 if stop is None else GLANCE_S, max_messages=1)
            for message in messages:
                self._handle(message, handler, max_attempts, on_error)
            self.commit()
            if not messages and stop is None:
                return

    def require_shared_group(self) -> None:
        """Raise the ValueError of `consume` without topics and a group."""
        if self._group is None or self._named:
            raise ValueError("consume needs a group that shares the queues of topics: give topics and group")

    def _handle(
        self,
        message: ReceivedMessage,
        handler: Callable[[ReceivedMessage], object],
        max_attempts: int,
        on_error: Callable[[ReceivedMessage, BaseException], None] | None,
    ) -> None:
        for attempt in range(max_attempts):
            try:
                handler(message.replace(reconsume_times=attempt))
                return
            except Exception as error:
                if on_error is not None:
                    on_error(message, error)
        self.store_dead_letter(message, max_attempts)

    def store_dead_letter(self, message: ReceivedMessage, attempts: int) -> None:
        """Store *message* in %DLQ%group, after so many failed attempts."""
        failed = Message(
            f"{DEAD_LETTER_PREFIX}{self._group_name}",
            message.body,
            tag=message.tag,
            keys=message.keys,
            properties=dict(message.properties),
        )
        self._log.create_topic(failed.topic, queues=1)
        self._log.append([failed], lambda _: 0, {"reconsume_times": attempts})

    @property
    def assignment(self) -> frozenset[TopicQueue]:
        """Return the queues that this consumer reads; none before the first `poll`."""
        return frozenset(self._positions)

    def position(self, queue: tuple[str, int]) -> int | None:
        """Return the queue offset of the next message to hand out."""
        return self._positions[TopicQueue(*queue)]

    def seek(self, queue: tuple[str, int], place: Place) -> None:
        """Continue at *place* in one of its queues. With auto_commit, the position is committed."""
        with self._log.changed:
            found = TopicQueue(*queue)
            if found not in self._positions:
                raise KeyError(found)
            self._positions[found] = self._resolve(found, place)
            if self._auto_commit:
                self.commit({found: self._positions[found]})

    def seek_all(self, place: Place) -> None:
        """Continue at *place* in every queue that this consumer reads."""
        with self._log.changed:
            self._follow()
            for queue in self._positions:
                self.seek(queue, place)

    def pause(self, *queues: tuple[str, int]) -> None:
        """Hand out no messages of *queues* until `resume`."""
        self._paused |= {TopicQueue(*queue) for queue in queues}

    def resume(self, *queues: tuple[str, int]) -> None:
        """Hand out messages of *queues* again."""
        self._paused -= {TopicQueue(*queue) for queue in queues}

    def lag(self) -> dict[TopicQueue, int]:
        """Return the number of messages that are not handed out yet, by queue."""
        with self._log.changed:
            self._follow()
            return {
                queue: max(0, len(self._log.queue(queue)) - position) for queue, position in self._positions.items()
            }

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit *offsets*, or else the positions after all handed-out messages. ValueError without a group."""
        if self._group is None:
            raise ValueError("a consumer without a group cannot commit: give group")
        with self._log.changed:
            if offsets is None:
                self._commit_positions()
            else:
                self._group.committed.update({TopicQueue(*queue): offset for queue, offset in offsets.items()})

    def commit_async(self, offsets: Offsets | None = None) -> Future[None]:
        """Commit as `commit` does, and return a complete future."""
        self.commit(offsets)
        future = Future[None]()
        future.set_result(None)
        return future

    def _commit_positions(self) -> None:
        """Commit the positions in the queues that this member still has."""
        assert self._group is not None
        own = self._positions.keys() & self._share()
        self._group.committed.update({queue: self._positions[queue] for queue in own})

    def commit_if_automatic(self) -> None:
        """With auto_commit, commit the messages that were handed out."""
        if self._auto_commit:
            self._commit_positions()

    def close(self, *, commit: bool = True) -> None:
        """Leave the group. With auto_commit, first commit all handed-out messages, unless *commit* is False."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._group is not None:
            with self._log.changed:
                if commit:
                    self.commit_if_automatic()
                self._group.members.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the consumer. After an exception, the last messages handed out are not committed."""
        self.close(commit=kind is None)
