"""Tidemark's counterpart of the DefaultMessageStore in RocketMQ's tests: put, dispatch, query.

It is a running writer over real gRPC, the pipeline's epochs in this process, and reads as a broker's client sees them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import make_plan
from tests.builders import properties, wire_batch
from tests.integration.writer.harness import Refusal, RunningWriter, refusal_of, stored_records
from tests.pipeline_runs import build
from tidemark.format.record import Record
from tidemark.index.key_index import index_files
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key
from tidemark.read.lookup.offset_by_time import Boundary, offset_by_time_as_broker, store_time
from tidemark.read.lookup.record_lookup import message_at
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_rows import Row, message_rows
from tidemark.read.pull import PullRequest, PullResult, PullStatus
from tidemark.read.pull_as_broker import TransferLimits, pull_as_broker
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.store_reader import StoreReader
from tidemark.status import BY_REASON, STATUS
from tidemark.store.storage import Storage
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

Message = tuple[bytes, dict[str, str]]  # body, properties
MAX_MESSAGE_BYTES = 128 << 20  # getMessage's own default of maxTotalMsgSize


class MessageStore:
    """Started by `with`. Sizes are those of RocketMQ's test: bytes of a log file, units of a queue file."""

    def __init__(
        self,
        root: Path,
        *,
        log_file_size: int = 1 << 20,
        units_a_file: int = 100,
        batch_units_a_file: int = 20,
        index_slots: int = 100,
        index_entries: int = 1000,
        storage: Storage | None = None,
        **settings: Any,
    ) -> None:
        self.root = root
        self._reader: StoreReader | None = None
        self.sizes: dict[str, Any] = {
            "consume_queue_file_size_bytes": 20 * units_a_file,
            "batch_consume_queue_file_size_bytes": 46 * batch_units_a_file,
            "index_slots": index_slots,
            "index_entries": index_entries,
        }
        self.writer = RunningWriter(
            root, storage, commit_log_segment_size_bytes=log_file_size, **{"default_queues": 1, **settings}
        )

    def __enter__(self) -> Self:
        self.writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.stop()

    # -- writing --------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, *, batch: bool = False, queues: int = 1) -> None:
        """Create a topic with SimpleCQ or BatchCQ queues."""
        attributes = {"+queue.type": "BatchCQ"} if batch else {}
        request = topics_pb2.CreateTopicRequest(name=name, queue_count=queues, attributes=attributes)
        self.writer.topics.CreateTopic(request)

    def put(self, topic: str, *messages: Message, queue_id: int = 0, **fields: Any) -> pb.AppendBatchResponse:
        """Put one batch: with one message it is a single put, on a BatchCQ topic it is an inner batch."""
        wire = wire_batch(*((body, properties(entries), 0) for body, entries in messages))
        return self.writer.append(topic, wire, queue_id=queue_id, **fields)

    def refused(self, topic: str, *messages: Message, **fields: Any) -> Refusal:
        """Return the refusal of a put."""
        return refusal_of(lambda: self.put(topic, *messages, **fields))

    def refused_spelled_out(self, topic: str, message: pb.Message) -> Refusal:
        """Return the refusal of an unpacked message: packed ones cannot carry too long properties."""
        return refusal_of(lambda: self.writer.append(topic, messages=pb.MessageList(messages=[message])))

    def records(self) -> list[Record]:
        """Return every record of the log, decoded."""
        return stored_records(self.root)

    def wait_for_commit(self) -> None:
        """Wait until all puts are committed: an answer FLUSH_DISK_TIMEOUT comes before."""
        deadline = time.monotonic() + 60
        while (info := self.writer.info()).committed_offset < info.max_physical_offset:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def dispatch(self) -> None:
        """Index the committed data, as `pipeline --once` with a running writer does."""
        build(make_plan(PipelineSettings(store_root=self.root, once=True, **self.sizes)))
        self._reader = None

    # -- reading --------------------------------------------------------------------------------------------------

    def get_message(
        self,
        topic: str,
        offset: int,
        max_messages: int,
        *,
        queue_id: int = 0,
        max_bytes: int = MAX_MESSAGE_BYTES,
        limits: TransferLimits | None = None,
    ) -> PullResult:
        """Call getMessage, as a broker answers it."""
        queue, reader, bounds = self._queue(topic, queue_id)
        return pull_as_broker(
            queue,
            reader.log,
            bounds,
            PullRequest(offset, max_messages, max_bytes),
            log_end=self.max_physical_offset,
            limits=limits or TransferLimits(),
        )

    def bounds(self, topic: str, queue_id: int = 0) -> QueueBounds:
        """Return minimum and maximum offset of a queue, and its units."""
        return self._queue(topic, queue_id)[2]

    def look(self, physical_offset: int) -> list[Row]:
        """Call lookMessageByOffset: the messages of the record at a position."""
        reader = self.reader
        return message_rows(message_at(reader, reader.watermark(), physical_offset), BodyEncoding.UTF8)

    def by_key(self, topic: str, key: str, *, unique: bool = False) -> list[Row]:
        """Call queryMessage: the messages with the key."""
        reader = self.reader
        index = IndexReader(reader.paths.index, slots=self.sizes["index_slots"], entries=self.sizes["index_entries"])
        found = find_by_key(reader, index, reader.watermark(), KeyQuery(topic, key, unique=unique))
        return [row for part in found.parts for row in message_rows(part, BodyEncoding.UTF8)]

    def offset_in_queue_by_time(self, topic: str, time_ms: int, boundary: Boundary = Boundary.LOWER) -> int:
        """Call getOffsetInQueueByTime."""
        queue, reader, bounds = self._queue(topic, 0)
        return offset_by_time_as_broker(queue, reader.log, bounds, time_ms, boundary)

    def unit(self, topic: str, offset: int) -> Unit:
        """Return the unit that holds a queue offset."""
        queue, reader, bounds = self._queue(topic, 0)
        row = queue.run.read(queue.locate(offset, bounds.units), 1)[0]
        place = int(row["physical_offset"])
        return Unit(place, int(row["message_size"]), store_time(reader.log, place))

    @property
    def max_physical_offset(self) -> int:
        """Return the log's end."""
        return self.writer.info().max_physical_offset

    def queue_next_offset(self, topic: str, queue_id: int = 0) -> int:
        """Return the queue's next offset: getMaxOffsetInQueue with committed=False."""
        answer = self.writer.topics.DescribeTopic(topics_pb2.DescribeTopicRequest(name=topic))
        return int(answer.queues[queue_id].next_queue_offset)

    def index_file_names(self) -> list[str]:
        """Return the names of the key index's files."""
        return [path.name for path in index_files(self.root / "index")]

    def _queue(self, topic: str, queue_id: int) -> tuple[QueueReader, StoreReader, QueueBounds]:
        reader = self.reader
        queue = reader.queue(topic, queue_id)
        return queue, reader, reader.bounds(queue, reader.watermark())

    @property
    def reader(self) -> StoreReader:
        """Return a reader of everything that was dispatched."""
        if self._reader is None:
            self._reader = StoreReader(self.root)
        return self._reader


class Unit(NamedTuple):
    """A unit's fields, and the store time of its record."""

    physical_offset: int
    size: int
    store_timestamp: int


def rows_of(result: PullResult) -> list[Row]:
    """Return the messages of a pull, in order, as a broker's client sees them."""
    return [row for part in result.parts for row in message_rows(part, BodyEncoding.AUTO, as_broker=True)]


def record_count(result: PullResult) -> int:
    """Return the number of records of a pull: an inner batch is one."""
    return sum(len(part.records.rows) for part in result.parts)


def numbered(count: int, entries: Sequence[dict[str, str]] | dict[str, str] = (), start: int = 0) -> list[Message]:
    """Return messages body<start>, body<start + 1>, ... with the same properties each, or one dict a message."""
    chosen = [entries] * count if isinstance(entries, dict) else list(entries) or [{}] * count
    return [(b"body%d" % (start + i), chosen[i]) for i in range(count)]


def put_status(refusal: Refusal) -> str:
    """Return RocketMQ's PutMessageStatus for a refusal."""
    return STATUS[BY_REASON[refusal.reason]].put_status


FOUND = PullStatus.FOUND
