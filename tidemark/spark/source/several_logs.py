"""SeveralLogs: the stores of several query services as one log. Its queues are StoreQueues."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tidemark.client.received_message import StoreQueue, TopicQueue, queue_of_store
from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.read.messages.message_columns import SCHEMA
from tidemark.spark.source.log import Bounds, Log, MessagePage, QueueOffset
from tidemark.spark.source.service_log import ServiceLog
from tidemark.tls.credentials import Credentials


class SeveralLogs:
    """Log over the query services at *urls*; other arguments as for `ServiceLog`. A topic need not be in every store.

    Raises TopicNotFoundError for a queue of another store, such as one that the urls of an earlier run named.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout_s: float,
        credentials: Credentials | None = None,
        columns: Collection[str] = SCHEMA.names,
    ) -> None:
        self._logs: dict[str, Log] = {
            url: ServiceLog(url, timeout_s=timeout_s, credentials=credentials, columns=columns) for url in urls
        }

    def topics(self) -> list[str]:
        return sorted({topic for log in self._logs.values() for topic in log.topics()})

    def queues_of(self, topic: str) -> list[TopicQueue]:
        found: list[TopicQueue] = []
        missing: list[TopicNotFoundError] = []
        for url, log in self._logs.items():
            try:
                found += [queue_of_store(queue, url) for queue in log.queues_of(topic)]
            except TopicNotFoundError as error:
                missing.append(error)
        if len(missing) == len(self._logs):
            raise missing[0]
        return found

    def assigned(self, queue: TopicQueue) -> list[TopicQueue]:
        found = [one for one in self.queues_of(queue.topic) if one.queue_id == queue.queue_id]
        if not found:
            raise QueueIllegalError(f"no store has queue {queue.queue_id} of {queue.topic}", **queue._asdict())
        return found

    def _of(self, queue: TopicQueue) -> tuple[Log, TopicQueue]:
        """Return the log of *queue*, and the queue's name there."""
        store = queue.store if isinstance(queue, StoreQueue) else ""
        if store not in self._logs:
            raise TopicNotFoundError(
                f"queue {queue.queue_id} of {queue.topic} is in the store {store!r}, which is not among the stores of "
                f"this query: {', '.join(self._logs)}",
                topic=queue.topic,
            )
        return self._logs[store], TopicQueue(*queue)

    def bounds(self, queue: TopicQueue) -> Bounds:
        log, own = self._of(queue)
        return log.bounds(own)

    def offset_at(self, queue: TopicQueue, timestamp_ms: int) -> int | None:
        log, own = self._of(queue)
        return log.offset_at(own, timestamp_ms)

    def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
        log, own = self._of(queue)
        return log.end_within(own, start, end, max_bytes)

    def pages(self, queue: TopicQueue, start: int, end: int, *, tags: frozenset[str] | None) -> Iterator[MessagePage]:
        log, own = self._of(queue)
        return log.pages(own, start, end, tags=tags)

    def places_of_key(self, topic: str, key: str, most: int) -> list[QueueOffset] | None:
        """Return None if one of the stores does."""
        found: list[QueueOffset] = []
        for url, log in self._logs.items():
            try:
                places = log.places_of_key(topic, key, most - len(found))
            except TopicNotFoundError:
                continue
            if places is None:
                return None
            found += [QueueOffset(queue_of_store(place.queue, url), place.offset) for place in places]
        return found

    def wait_for(self, queue: TopicQueue, end: int) -> bool:
        log, own = self._of(queue)
        return log.wait_for(own, end)

    def settle(self) -> None:
        for log in self._logs.values():
            log.settle()

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
