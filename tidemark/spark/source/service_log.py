"""ServiceLog: a store read through its query service."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from urllib.parse import quote

import numpy as np
import orjson
import pyarrow as pa

from tidemark.client.answers import TableVerify
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.query import Query
from tidemark.errors import StoreContradictionError
from tidemark.read.lookup.key_places import can_be_indexed
from tidemark.read.messages.message_columns import SCHEMA
from tidemark.read.records import REMOVED
from tidemark.spark.source.log import BATCH_BYTES, Bounds, MessagePage, QueueOffset, gone, short
from tidemark.spark.source.visible import CATCH_UP_S, SETTLE_S, wait_until, wait_until_visible
from tidemark.store.originals.topics import BATCH_QUEUE
from tidemark.tls.credentials import Credentials

_SAMPLE_MESSAGES = 64
_PAGE_MESSAGES = 32_768  # also limited by BATCH_BYTES


class ServiceLog:
    """Log over the query service at *url*. columns: of its pages."""

    def __init__(
        self,
        url: str | None,
        *,
        timeout_s: float,
        credentials: Credentials | None = None,
        columns: Collection[str] = SCHEMA.names,
    ) -> None:
        self._columns = sorted({"queue_offset", *columns})
        self._query = Query(url, timeout_s=timeout_s, credentials=credentials)

    def topics(self) -> list[str]:
        return sorted(topic["topic"] for topic in self._query.get("/v1/topics")["topics"])

    def queues_of(self, topic: str) -> list[TopicQueue]:
        path = f"/v1/topics/{quote(topic, safe='')}"
        return [TopicQueue(topic, queue_id) for queue_id in self._query.get(path)["queue_ids"]]

    def assigned(self, queue: TopicQueue) -> list[TopicQueue]:
        return [queue]

    def bounds(self, queue: TopicQueue) -> Bounds:
        answer = self._query.queue(*queue)
        return Bounds(answer["min_offset"], answer["max_offset"])

    def offset_at(self, queue: TopicQueue, timestamp_ms: int) -> int | None:
        answer = self._query.offset_at(*queue, timestamp_ms)
        return None if answer["store_timestamp_ms"] is None else int(answer["offset"])

    def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
        """Return an estimate based on the mean size of the first messages."""
        sample = self._query.pull_records(*queue, start, max_messages=_SAMPLE_MESSAGES)
        if not sample.message_count:
            return end
        mean = max(1, len(sample.data) // sample.message_count)
        return min(end, start + max_bytes // mean)

    def places_of_key(self, topic: str, key: str, most: int) -> list[QueueOffset] | None:
        """Return None also if the service cannot read its index or finds damage; the queues are scanned instead."""
        if not can_be_indexed(topic, key) or self._is_partly_indexed(topic):
            return None
        with contextlib.suppress(StoreContradictionError):
            return self._places(topic, key, most)
        return None

    def _places(self, topic: str, key: str, most: int) -> list[QueueOffset] | None:
        found: list[QueueOffset] = []
        cursor: str | None = None
        while len(found) <= most:
            page = self._query.by_key(topic, key, limit=_SAMPLE_MESSAGES, cursor=cursor)
            if page["skipped"]:
                return None
            found += [
                QueueOffset(TopicQueue(topic, message["queue_id"]), message["queue_offset"])
                for message in page["messages"]
            ]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found if len(found) <= most else None

    def _is_partly_indexed(self, topic: str) -> bool:
        """Return True if keys may be missing: of inner batches, or not indexed by an attached store's broker."""
        facts = self._query.get(f"/v1/topics/{quote(topic, safe='')}")
        return bool(facts["queue_type"] == BATCH_QUEUE or self._query.get("/v1/status")["attached"])

    def pages(self, queue: TopicQueue, start: int, end: int, *, tags: frozenset[str] | None) -> Iterator[MessagePage]:
        tag = None if tags is None else sorted(tags)
        while True:
            for page in self._pages_here(queue, start, end, tag):
                yield page
                start = page.next_offset
            if start >= end:
                return
            if not self.wait_for(queue, end):
                raise short(queue, start, start)

    def _pages_here(self, queue: TopicQueue, start: int, end: int, tag: list[str] | None) -> Iterator[MessagePage]:
        """Yield the messages that the service has now."""
        next_offset = start
        most = min(end - start, _PAGE_MESSAGES)
        verify: TableVerify = "service" if tag else "client"  # readers of a large topic are many, the service is one
        for table in self._query.tables(
            *queue,
            start,
            with_empty=True,
            verify=verify,
            max_messages=most,
            max_bytes=BATCH_BYTES,
            tag=tag,
            columns=self._columns,
        ):
            facts = table.schema.metadata
            skipped = orjson.loads(facts[b"tidemark.skipped"])
            if any(skip["reason"] == REMOVED for skip in skipped):
                self._require(queue, next_offset)
            next_offset = int(facts[b"tidemark.next_offset"])
            damage = [f"{skip['reason']} at queue offset {skip['queue_offset']}" for skip in skipped]
            offsets = table.column("queue_offset").to_numpy()
            wanted = table.slice(0, int(np.searchsorted(offsets, end)))
            yield from _pages(wanted, next_offset, damage)
            if next_offset >= end:
                return

    def wait_for(self, queue: TopicQueue, end: int) -> bool:
        """Wait, if the service is one of a group's."""
        return self._query.is_group and wait_until(lambda: self.bounds(queue).max_offset >= end, CATCH_UP_S)

    def _require(self, queue: TopicQueue, offset: int) -> None:
        """Raise OffsetTooSmallError if retention deleted messages from *offset* on, because that is not damage."""
        min_offset = self.bounds(queue).min_offset
        if offset < min_offset:
            raise gone(queue, offset, min_offset)

    def settle(self) -> None:
        wait_until_visible(self._query, SETTLE_S)

    def close(self) -> None:
        self._query.close()


def _pages(table: pa.Table, next_offset: int, damage: list[str]) -> Iterator[MessagePage]:
    """Report damage with the first page only."""
    for batch in table.to_batches() or [_NOTHING]:
        yield MessagePage(batch, next_offset, damage)
        damage = []


_NOTHING = pa.RecordBatch.from_pylist([], schema=SCHEMA)
