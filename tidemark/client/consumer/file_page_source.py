"""FilePulls: reads messages directly from a store's files on this host, with the query service's results.

It writes nothing, reads nothing above the watermark, and checks every record.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import orjson
import pyarrow as pa

from tidemark.client.answers import SkippedAnswer
from tidemark.client.consumer.wakeup import Bell
from tidemark.client.received_message import PulledPage, ReceivedMessage, TopicQueue
from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError, UnavailableError
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_columns import SCHEMA, message_batch
from tidemark.read.messages.message_json import message_json
from tidemark.read.pull import PullRequest, PullResult, PullStatus, pull
from tidemark.read.store_reader import StoreReader
from tidemark.read.tag_filter import TagFilter
from tidemark.read.unit_run import UnitsGoneError
from tidemark.store.file_watch import FileWatch

if TYPE_CHECKING:
    from tidemark.client.rest.arrow_page import TablePage

_LOOK_S, _RECHECK_S = 0.002, 0.25  # interval of checks without and with notifications from inotify
_LOOKS = 5
_WORTH_WAITING = frozenset(
    {PullStatus.NO_MATCHED_MESSAGE, PullStatus.OFFSET_OVERFLOW_ONE, PullStatus.NO_MESSAGE_IN_QUEUE}
)


class FileFetched(NamedTuple):
    """The result of one read of a queue. first_offset: the topic's first offset; lower ones are of a deleted topic."""

    queue: TopicQueue
    requested_offset: int
    result: PullResult
    first_offset: int

    def page(self) -> PulledPage:
        """Return the page, equal to that of the query service's JSON."""
        self._require_range()
        result = self.result
        rows = [piece for part in result.parts for piece in message_json(part, BodyEncoding.BASE64, terminator=b",")]
        messages = orjson.loads(b"[" + b"".join(rows)[:-1] + b"]")
        return PulledPage(
            self.queue,
            result.status.value,
            [ReceivedMessage.of(self.queue, message) for message in messages],
            self.requested_offset,
            result.next_offset,
            result.bounds.min_offset,
            result.bounds.max_offset,
            self._skipped(),
        )

    def table(self) -> TablePage:
        """Return the table, equal to that of the query service's Arrow stream."""
        from tidemark.client.rest.arrow_page import TablePage

        self._require_range()
        batches = [message_batch(part) for part in self.result.parts]
        table = pa.Table.from_batches(batches, SCHEMA)
        return TablePage(self.queue, table, self.result.next_offset, self._skipped())

    def _skipped(self) -> list[SkippedAnswer]:
        return [cast(SkippedAnswer, skip._asdict()) for skip in self.result.skipped]

    def _require_range(self) -> None:
        facts = {
            **self.queue._asdict(),
            "requested_offset": self.requested_offset,
            "first_offset": self.first_offset,
            "min_offset": self.result.bounds.min_offset,
            "max_offset": self.result.bounds.max_offset,
        }
        if self.result.status is PullStatus.OFFSET_TOO_SMALL:
            raise OffsetTooSmallError(f"offset {self.requested_offset} is below the queue's minimum", **facts)
        if self.result.status is PullStatus.OFFSET_OVERFLOW_BADLY:
            raise OffsetOutOfRangeError(f"offset {self.requested_offset} is above everything committed", **facts)


class FilePulls:
    """Pulls from the store at *root*; max_messages, max_bytes and tags as for a pull. Tags apply to *tagged_topics*."""

    def __init__(
        self, root: Path, *, max_messages: int, max_bytes: int, tags: list[str], tagged_topics: frozenset[str]
    ) -> None:
        self._store = StoreReader(root)
        self._max_messages, self._max_bytes = max_messages, max_bytes
        self._tags, self._no_tags = TagFilter.parse(tags), TagFilter.parse([])
        self._tagged_topics = tagged_topics
        self._wanted: dict[TopicQueue, int | str] = {}
        self._bell = Bell()
        self._watch: FileWatch | None = None
        with contextlib.suppress(OSError):  # inotify is not available: check at intervals
            self._watch = FileWatch()
        self._is_watching = False
        self.is_patient = False
        self.unreachable: tuple[float, UnavailableError] | None = None

    @property
    def descriptors(self) -> list[int]:
        """See `Pulls.descriptors`."""
        return [self._bell.descriptor, *([] if self._watch is None else [self._watch.descriptor])]

    def want(self, queue: TopicQueue, offset: int | str) -> None:
        """Look for messages of *queue* from *offset* on with the next call of `fetched`."""
        self._wanted[queue] = offset

    def drop(self, queue: TopicQueue) -> None:
        """Stop looking for messages of *queue*."""
        self._wanted.pop(queue, None)

    def keep_only(self, queues: frozenset[TopicQueue]) -> None:
        """Drop all queues that are not in *queues*."""
        for queue in self._wanted.keys() - queues:
            self.drop(queue)

    def fetched(self, timeout_s: float) -> Iterator[FileFetched]:
        """Yield results; wait for the first one until *timeout_s* or `wake`."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._watch_marks()
            found = [seen for queue in list(self._wanted) if (seen := self._look(queue)) is not None]
            left_s = deadline - time.monotonic()
            if found or left_s <= 0:
                break
            descriptors = [self._watch.descriptor] if self._watch is not None else []
            ready = self._bell.wait(descriptors, min(left_s, _RECHECK_S if self._is_watching else _LOOK_S))
            if ready.descriptors and self._watch is not None:
                self._watch.take()
            if ready.has_rung:
                break
        for seen in found:
            self.drop(seen.queue)
            yield seen

    def _look(self, queue: TopicQueue) -> FileFetched | None:
        """Return the result for *queue*; None if there is no message and no error."""
        for _ in range(_LOOKS):
            with contextlib.suppress(UnitsGoneError):  # files expired in the meantime: read the new bounds
                return self._look_once(queue)
        return None

    def _look_once(self, queue: TopicQueue) -> FileFetched | None:
        reader = self._store.queue(*queue)
        watermark = self._store.watermark()
        bounds = self._store.bounds(reader, watermark)
        named = {"earliest": bounds.min_offset, "latest": bounds.max_offset}
        offset = self._wanted[queue]
        start = named[offset] if isinstance(offset, str) else offset
        tags = self._tags if queue.topic in self._tagged_topics else self._no_tags
        asked = PullRequest(start, self._max_messages, self._max_bytes, tags=tags)
        result = pull(reader, self._store.log, bounds, asked)
        if result.status is PullStatus.OFFSET_OVERFLOW_BADLY and watermark.lag_bytes > 0:
            return None  # committed, but not visible yet
        is_new = isinstance(offset, str) or result.next_offset != start
        if not is_new and result.status in _WORTH_WAITING:
            return None
        return FileFetched(queue, start, result, self._store.first_offset(*queue))

    def _watch_marks(self) -> None:
        if not self._is_watching and self._watch is not None:
            with contextlib.suppress(OSError):  # the file does not exist yet
                self._watch.watch(self._store.paths.marks)
                self._is_watching = True

    def failed(self, error: UnavailableError) -> None:
        """Raise *error*: files are never unavailable."""
        raise error

    def wake(self) -> None:
        """End a wait of `fetched`. Called from another thread."""
        self._bell.ring()

    def close(self) -> None:
        """Close the files."""
        if self._watch is not None:
            self._watch.close()
        self._bell.close()
        self._store.watermarks.close()
