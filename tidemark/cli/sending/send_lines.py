"""Sends lines as messages: wire batches by queue, many in flight. Like `Producer.send_table`, but without numpy."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from tidemark.cli.sending.line_input import LineRow
from tidemark.client import Message, MessageQueue, Producer, SendResult
from tidemark.client.producer.batch_keys import with_unique_keys
from tidemark.errors import RejectedError
from tidemark.format.elements import ELEMENT_OVERHEAD, Element, encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.primitives import queue_of_key

_BATCH_BYTES = 1 << 20


class _Batch(NamedTuple):
    """Rows of one queue, by number; queue None: any queue."""

    queue: MessageQueue | None
    rows: list[int]


def send_lines(
    producer: Producer,
    topic: str,
    rows: Sequence[LineRow],
    *,
    batch_size: int,
    on_acknowledged: Callable[[int], None],
) -> list[SendResult]:
    """Send all rows, and wait for all answers. Rows with the same key keep their order,
    and so do all rows if they go to one queue.

    Raises the first failure, which stops further batches; a RejectedError for a single row has the fact row. Rows that
    are not valid messages raise before anything is sent.
    """
    elements = [_element_of(topic, number, row) for number, row in enumerate(rows)]
    sent: list[tuple[_Batch, Future[SendResult]]] = []
    failed = threading.Event()
    unique_keys = UniqueKeys()

    def answered(done: Future[SendResult]) -> None:  # in the producer's own thread
        if done.exception() is None:
            on_acknowledged(done.result().count)
        else:
            failed.set()

    try:
        for batch in _batches(elements, _queues_of(producer, topic, rows), batch_size):
            if failed.is_set():
                break
            chosen = [elements[row] for row in batch.rows]
            keys = unique_keys.make_many(len(chosen))
            packed = encode_elements(with_unique_keys(chosen, [None] * len(chosen), keys))
            future = producer.send_packed_async(topic, packed, count=len(batch.rows), queue_id=batch.queue)
            future.add_done_callback(answered)
            sent.append((batch, future))
    finally:
        for _, future in sent:
            future.exception()
    return [_result(batch, future) for batch, future in sent]


def _result(batch: _Batch, future: Future[SendResult]) -> SendResult:
    try:
        return future.result()
    except RejectedError as error:
        if len(batch.rows) > 1:
            raise
        raise _of_row(error, batch.rows[0]) from error  # for example, a row that is too large for a batch with others


def message_of(topic: str, row: LineRow, *, delay_level: int = 0) -> Message:
    """Return the message of *row*."""
    keys = (row.key,) if row.key else ()
    return Message(topic, row.body, keys=keys, tag=row.tag, properties=row.properties, delay_level=delay_level)


def send_delayed(
    producer: Producer,
    topic: str,
    rows: Sequence[LineRow],
    *,
    delay_level: int,
    on_acknowledged: Callable[[int], None],
) -> list[SendResult]:
    """Send all rows, one by one, because a batch cannot be delayed. Raises as `send_lines` does."""
    messages = [_valid_message(topic, number, row, delay_level) for number, row in enumerate(rows)]
    futures: list[Future[SendResult]] = []

    def answered(done: Future[SendResult]) -> None:  # in the producer's own thread
        if done.exception() is None:
            on_acknowledged(1)

    try:
        for message in messages:
            futures.append(producer.send_async(message))
            futures[-1].add_done_callback(answered)
    finally:
        for future in futures:
            future.exception()
    return [_result(_Batch(None, [number]), future) for number, future in enumerate(futures)]


def _valid_message(topic: str, number: int, row: LineRow, delay_level: int) -> Message:
    _element_of(topic, number, row)
    return message_of(topic, row, delay_level=delay_level)


def _element_of(topic: str, number: int, row: LineRow) -> Element:
    try:
        return message_of(topic, row).to_element()
    except RejectedError as error:
        raise _of_row(error, number) from error


def _of_row(error: RejectedError, number: int) -> RejectedError:
    return type(error)(error.message, **{**error.facts, "row": number})


def _queues_of(producer: Producer, topic: str, rows: Sequence[LineRow]) -> list[MessageQueue | None]:
    """Return the queue of each row, chosen by its key as `Producer.send` does."""
    queues = producer.queues(topic)
    if not queues:  # the writer refuses the batch with the reason
        return [None] * len(rows)
    return [queues[queue_of_key(row.key, len(queues))] if row.key else None for row in rows]


def _batches(elements: Sequence[Element], queues: Sequence[MessageQueue | None], batch_size: int) -> Iterator[_Batch]:
    """Yield the batches in the order of their last rows; batches of one queue are in the order of its rows."""
    held: defaultdict[MessageQueue | None, list[int]] = defaultdict(list)
    sizes: defaultdict[MessageQueue | None, int] = defaultdict(int)
    for row, (element, queue) in enumerate(zip(elements, queues, strict=True)):
        size = ELEMENT_OVERHEAD + len(element.body) + len(element.properties)
        if held[queue] and (len(held[queue]) == batch_size or sizes[queue] + size > _BATCH_BYTES):
            yield _Batch(queue, held.pop(queue))
            sizes[queue] = 0
        held[queue].append(row)
        sizes[queue] += size
    for queue, last in held.items():
        yield _Batch(queue, last)
