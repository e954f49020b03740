"""Sends a table as messages: packed into wire batches by queue, with many batches in flight."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.table_columns import ColumnNames, TableLike, column_slices, to_arrow
from tidemark.client.send_result import SendResult, SendStatus
from tidemark.errors import StoreError, TopicForbiddenError
from tidemark.format.message_id import UniqueKeys
from tidemark.format.pack import I64Array, pack_batches
from tidemark.format.primitives import MAX_INNER_BATCH_COUNT

BATCH_BYTES = 1 << 20
_Sent = tuple[I64Array, Future[SendResult]]  # rows of one batch and its answer

_DOUBTS = (SendStatus.FLUSH_SLAVE_TIMEOUT, SendStatus.FLUSH_DISK_TIMEOUT, SendStatus.SLAVE_NOT_AVAILABLE)


class BatchSender(Protocol):
    """The part of a `Producer` that a table needs."""

    def queues(self, topic: str) -> tuple[MessageQueue, ...]: ...

    def send_packed_async(
        self, topic: str, packed: bytes, *, count: int, queue_id: MessageQueue
    ) -> Future[SendResult]: ...


@dataclass(frozen=True, slots=True)
class TableResult:
    """The stored positions of a table's rows. queue_numbers, queue_offsets: one number per row, in the table's order.

    queues  the queues that have rows; queue_numbers are indexes into it
    """

    topic: str
    results: tuple[SendResult, ...]
    queues: tuple[MessageQueue, ...]
    queue_numbers: NDArray[np.int32]
    queue_offsets: I64Array

    @property
    def queue_ids(self) -> NDArray[np.int32]:
        """Return the queue id of each row; with several writers, use `queue_numbers` to get the writer as well."""
        return np.array([queue.queue_id for queue in self.queues], np.int32)[self.queue_numbers]

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return len(self.queue_numbers)

    @property
    def status(self) -> SendStatus:
        """Return PUT_OK only if all batches have it, otherwise the status of the greatest doubt."""
        statuses = {result.status for result in self.results}
        return next((status for status in _DOUBTS if status in statuses), SendStatus.PUT_OK)

    @property
    def end_physical_offset(self) -> int:
        """Return the watermark at which all rows are visible; 0 for an empty table."""
        return max((result.end_physical_offset for result in self.results), default=0)


class TableSend:
    """One `Producer.send_table`. Rows of a queue keep their order; each batch is stored as a whole, a table is not."""

    def __init__(
        self, producer: BatchSender, topic: str, *, batch_size: int, on_acknowledged: Callable[[int], None] | None
    ) -> None:
        if not 1 <= batch_size <= MAX_INNER_BATCH_COUNT:
            raise ValueError(f"batch_size must be 1 to {MAX_INNER_BATCH_COUNT}, not {batch_size}")
        self._producer = producer
        self._topic = topic
        self._batch_size = batch_size
        self._on_acknowledged = on_acknowledged
        self._failed = False
        self._unique_keys = UniqueKeys()

    def send(
        self,
        table: TableLike,
        *,
        key: str | None,
        tag: str | None,
        body: str | None,
        unique_key: str | None,
    ) -> TableResult:
        """Send all rows. The first failure stops further batches and is raised once all batches are answered.

        raises KeyError for an unknown column; BatchEmptyError and the like (fact: row) for a row that is not a valid
        message: slices of some 10,000 rows are checked as a whole before any of their rows is sent
        """
        arrow = to_arrow(table)
        names = ColumnNames(body, tag, key, unique_key)
        if missing := {name for name in names if name is not None} - set(arrow.column_names):
            raise KeyError(f"the table has no column {min(missing)!r}")
        sent: list[_Sent] = []
        try:
            self._send_batches(arrow, names, sent)
        finally:
            acknowledged = _wait(sent)
        return self._result(arrow.num_rows, sent, acknowledged)

    def _send_batches(self, table: pa.Table, names: ColumnNames, sent: list[_Sent]) -> None:
        queues = self._producer.queues(self._topic)
        if not queues:
            raise TopicForbiddenError("the topic has no queue that accepts messages", topic=self._topic)
        for first_row, columns in column_slices(table, names):
            batches = pack_batches(
                columns,
                queues=len(queues),
                max_count=self._batch_size,
                max_bytes=BATCH_BYTES,
                first_row=first_row,
                unique_keys=self._unique_keys,
            )
            for number, rows, packed in batches:
                if self._failed:
                    return
                future = self._producer.send_packed_async(self._topic, packed, queue_id=queues[number], count=len(rows))
                future.add_done_callback(self._answered)
                sent.append((first_row + rows, future))

    def _answered(self, done: Future[SendResult]) -> None:
        if done.exception() is not None:
            self._failed = True
        elif self._on_acknowledged is not None:
            self._on_acknowledged(done.result().count)

    def _result(self, rows: int, sent: list[_Sent], acknowledged: int) -> TableResult:
        queue_numbers, queue_offsets = np.empty(rows, np.int32), np.empty(rows, np.int64)
        queues: dict[MessageQueue, int] = {}
        for numbers, future in sent:
            error = future.exception()
            if error is not None:
                error.add_note(f"{acknowledged} of {rows} rows were acknowledged")
                raise error
            result = future.result()
            queue_numbers[numbers] = queues.setdefault(result.queue, len(queues))
            queue_offsets[numbers] = result.queue_offset + np.arange(len(numbers))
        results = tuple(future.result() for _, future in sent)
        return TableResult(self._topic, results, tuple(queues), queue_numbers, queue_offsets)


def _wait(sent: list[_Sent]) -> int:
    """Wait for all answers; return the number of acknowledged rows."""
    acknowledged = 0
    for rows, future in sent:
        error = future.exception()
        if error is None:
            acknowledged += len(rows)
        elif not isinstance(error, StoreError):
            raise error
    return acknowledged
