"""Lines as messages: wire batches by queue, many in flight. As `Producer.send_table`, without numpy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from tidemark.cli.rows import LineRow
from tidemark.client import Message, MessageQueue, Producer, SendResult
from tidemark.client.validation import require_body
from tidemark.errors import RejectedError
from tidemark.format.elements import ELEMENT_OVERHEAD, Element, encode_elements
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES, java_hash

_BATCH_BYTES = 1 << 20


class _Batch(NamedTuple):
    """Elements of one queue; None: whichever comes next."""

    queue: MessageQueue | None
    elements: list[Element]


def send_lines(
    producer: Producer,
    topic: str,
    rows: Sequence[LineRow],
    *,
    batch_size: int,
    on_acknowledged: Callable[[int], None],
) -> list[SendResult]:
    """Send all, and wait for all answers. Rows of one key keep their order, and where all go to one queue, all do.

    raises the first failure, which stops further batches; a RejectedError with the fact row for one that is no message:
    then nothing is sent
    """
    elements = [_element_of(topic, number, row) for number, row in enumerate(rows)]
    sent: list[Future[SendResult]] = []

    def answered(done: Future[SendResult]) -> None:
        if done.exception() is None:
            on_acknowledged(done.result().count)

    try:
        for queue, batch in _batches(elements, _queues_of(producer, topic, rows), batch_size):
            if any(future.done() and future.exception() is not None for future in sent):
                break
            future = producer.send_packed_async(topic, encode_elements(batch), count=len(batch), queue_id=queue)
            future.add_done_callback(answered)
            sent.append(future)
    finally:
        for future in sent:
            future.exception()
    return [future.result() for future in sent]


def _element_of(topic: str, number: int, row: LineRow) -> Element:
    try:
        element = Message(topic, row.body, keys=(row.key,) if row.key else (), tag=row.tag).to_element()
        require_body(element.body, MAX_MESSAGE_SIZE_BYTES)
    except RejectedError as error:
        raise type(error)(error.message, **{**error.facts, "row": number}) from error
    return element


def _queues_of(producer: Producer, topic: str, rows: Sequence[LineRow]) -> list[MessageQueue | None]:
    """Each row's, by its key as `Producer.send` chooses it."""
    queues = producer.queues(topic)
    if not queues:  # the writer tells why
        return [None] * len(rows)
    return [queues[abs(java_hash(row.key)) % len(queues)] if row.key else None for row in rows]


def _batches(elements: Sequence[Element], queues: Sequence[MessageQueue | None], batch_size: int) -> Iterator[_Batch]:
    """In the order of their last rows, those of a queue in the order of its rows."""
    held: defaultdict[MessageQueue | None, list[Element]] = defaultdict(list)
    sizes: defaultdict[MessageQueue | None, int] = defaultdict(int)
    for element, queue in zip(elements, queues, strict=True):
        size = ELEMENT_OVERHEAD + len(element.body) + len(element.properties)
        if held[queue] and (len(held[queue]) == batch_size or sizes[queue] + size > _BATCH_BYTES):
            yield _Batch(queue, held.pop(queue))
            sizes[queue] = 0
        held[queue].append(element)
        sizes[queue] += size
    for queue, last in held.items():
        yield _Batch(queue, last)
