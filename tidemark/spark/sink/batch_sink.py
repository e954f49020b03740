"""The sink's tasks: rows become wire batches whose ids are the same in a replay, so that each is stored once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.producer import Producer
from tidemark.client.producer.send_table import BATCH_BYTES
from tidemark.client.producer.table_columns import column_slices
from tidemark.client.send_result import SendResult
from tidemark.errors import ArgumentIllegalError, QueueIllegalError, TopicForbiddenError
from tidemark.format.elements import decode_elements, encode_elements
from tidemark.format.pack import I64Array, pack_batches
from tidemark.spark.sink.kafka_rows import own_columns
from tidemark.spark.sink.sent_before import SentBefore
from tidemark.spark.sink.sink_options import SinkOptions
from tidemark.spark.sink.sink_rows import NAMES, by_partition, by_topic, message_table, require_sink_schema, slices

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class BatchSink(DataSourceArrowWriter):
    """Sink of one job, whose tasks can be retried."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        require_sink_schema(schema, options.topic, kafka_columns=options.kafka_columns)
        self._options = options
        self._run = options.run_id or uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send all rows. Fails like `Producer.send_table`, and if the rows of a replay differ."""
        return send(iterator, self._options, self._run)


def current_task() -> TaskContext:
    """Return the running task."""
    task = TaskContext.get()
    assert task is not None, "runs in a task"
    return task


def send(batches: Iterator[pa.RecordBatch], options: SinkOptions, run: str) -> WriterCommitMessage:
    """Send all rows of a task. run: prefix of the message ids, the same in every attempt."""
    sending = _Sending(options, f"{run}-{current_task().partitionId()}-")
    try:
        for table in slices(map(own_columns, batches) if options.kafka_columns else batches):
            sending.add(table)
        sending.finish()
    finally:
        sending.close()
    return WriterCommitMessage()  # all rows are already stored


class _Sending:
    """One attempt of one task. prefix: of its message ids, followed by the row number."""

    def __init__(self, options: SinkOptions, prefix: str) -> None:
        self._options = options
        self._prefix = prefix
        self._producer = Producer(list(options.writers), timeout_s=options.timeout, credentials=options.credentials)
        self._before = SentBefore(options.url, timeout_s=options.timeout, credentials=options.credentials)
        self._under_way: list[Future[SendResult]] = []
        self._has_sent = False
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        """Send the rows that are not stored yet."""
        self._take_answers()
        numbers = pa.array(np.arange(self._rows, self._rows + table.num_rows))
        self._rows += table.num_rows
        numbered = table.append_column("row", numbers)
        for topic, rows in by_topic(numbered, self._options.topic):
            self._add_topic(topic, rows)

    def _add_topic(self, topic: str, rows: pa.Table) -> None:
        queues = self._producer.queues(topic)
        if not queues:
            raise TopicForbiddenError(f"topic {topic} has no writable queue", topic=topic)
        for queue_id, part in by_partition(rows):
            self._add_rows(topic, part, queues if queue_id is None else [self._queue(topic, queue_id, queues)])

    def _queue(self, topic: str, queue_id: int, queues: Sequence[MessageQueue]) -> MessageQueue:
        """Return the queue that rows name in the column partition."""
        if len(self._options.writers) > 1:
            raise ArgumentIllegalError("the column partition requires one writer; drop the column or name one writer")
        for queue in queues:
            if queue.queue_id == queue_id:
                return queue
        raise QueueIllegalError(f"topic {topic} has no queue {queue_id}, which the column partition names", topic=topic)

    def _add_rows(self, topic: str, rows: pa.Table, queues: Sequence[MessageQueue]) -> None:
        numbers = rows.column("row").combine_chunks()
        unique_keys = pc.binary_join_element_wise(self._prefix, numbers.cast(pa.string()), "")
        messages, several_keys = message_table(rows, unique_keys)
        for first_row, columns in column_slices(messages, NAMES):
            chunks = pack_batches(
                columns,
                queues=len(queues),
                max_count=self._options.batch_size,
                max_bytes=BATCH_BYTES,
                first_row=first_row,
                several_keys=several_keys,
            )
            for queue, chunk, packed in chunks:
                self._send_missing(topic, queues[queue], messages, first_row + chunk, packed)

    def _send_missing(self, topic: str, queue: MessageQueue, messages: pa.Table, rows: I64Array, packed: bytes) -> None:
        """Send the messages *rows* of a chunk that are not stored.

        The first request of an attempt is awaited before others.
        """
        bodies, unique_keys = messages.column("body"), messages.column("unique_key")

        def key(number: int) -> str:
            unique_key: str = unique_keys[int(rows[number])].as_py()
            return unique_key

        while len(rows) and (stored := self._before.count(topic, key, len(rows), _bytes(bodies[int(rows[0])]))):
            rows, packed = rows[stored:], _without_first(packed, stored)
        if not len(rows):
            return
        future = self._producer.send_packed_async(topic, packed, queue_id=queue, count=len(rows), request_id=key(0))
        self._under_way.append(future)
        if not self._has_sent:
            future.result()
            self._has_sent = True

    def _take_answers(self) -> None:
        """Remove completed requests and raise the first failure."""
        left = []
        for future in self._under_way:
            if future.done():
                future.result()
            else:
                left.append(future)
        self._under_way = left

    def finish(self) -> None:
        """Wait for all responses."""
        for future in self._under_way:
            future.result()

    def close(self) -> None:
        """Close the connections."""
        self._producer.close()
        self._before.close()


def _without_first(packed: bytes, count: int) -> bytes:
    """Return a wire batch without its first *count* messages."""
    return encode_elements(itertools.islice(decode_elements(packed), count, None))


def _bytes(value: pa.Scalar) -> bytes:
    body = value.as_py()
    return body.encode() if isinstance(body, str) else bytes(body)
