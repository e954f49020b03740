"""Sends rows to a topic in order, and reports how many were acknowledged, even after a failure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidemark.cli.sending.line_input import LineRows, Rows, TableRows
from tidemark.cli.sending.send_lines import send_delayed, send_lines
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.output import print_json
from tidemark.client import MessageQueue, Producer, SendResult
from tidemark.errors import ArgumentIllegalError, StoreError

_OnAcknowledged = Callable[[int], None]
_MOST_PLACES = 4  # queues that the summary names


class SendPlan(NamedTuple):
    """Where rows are sent, and how. delay_level: 0 for no delay; with a delay, rows are not sent in batches."""

    topic: str
    writer: str | None
    batch_size: int
    delay_level: int = 0


class QueueRange(NamedTuple):
    """The messages of this command in one queue; others may be between them."""

    first_offset: int
    last_offset: int
    messages: int


@dataclass
class Sent:
    """The rows that the writer has acknowledged so far."""

    messages: int = 0
    end_physical_offset: int = 0  # all rows of finished chunks are visible once the watermark has reached it
    is_flushed: bool = True
    queues: dict[MessageQueue, QueueRange] = field(default_factory=dict)  # of finished chunks, without delayed rows

    def add(self, results: Sequence[SendResult]) -> None:
        """Add the results of a finished chunk, whose messages are counted already."""
        for result in results:
            self.end_physical_offset = max(self.end_physical_offset, result.end_physical_offset)
            self.is_flushed &= result.status.is_confirmed
            if not result.deliver_timestamp_ms:
                first, end = result.queue_offset, result.queue_offset + result.count
                known = self.queues.get(result.queue, QueueRange(first, first, 0))
                self.queues[result.queue] = QueueRange(
                    min(known.first_offset, first), max(known.last_offset, end - 1), known.messages + result.count
                )

    def summary(self) -> str:
        """Return the summary text."""
        return "1 message is acknowledged" if self.messages == 1 else f"{self.messages:,} messages are acknowledged"

    def places(self) -> str:
        """Return the text of the queues and offsets; "" if no queue is known."""
        if len(self.queues) > _MOST_PLACES:
            return f", in {len(self.queues):,} queues"
        ranges = sorted((queue.queue_id, part) for queue, part in self.queues.items())
        return "".join(f", queue {queue_id} {_offsets(part)}" for queue_id, part in ranges)


def _offsets(part: QueueRange) -> str:
    first, last, _ = part
    return f"offset {first:,}" if first == last else f"offsets {first:,} to {last:,}"


def send_rows(rows: Iterable[Rows], plan: SendPlan, *, as_json: bool, with_progress: bool) -> None:
    """Send all rows, and report how many were acknowledged, and where. with_progress: also show progress on standard
    error.

    Raises the StoreError or OSError of the input or the writer, or KeyboardInterrupt, with the report as a note.
    """
    topic = plan.topic
    sent = Sent()
    try:
        # Leaving the producer's block waits for answers, also after Ctrl-C: the reported number is final.
        with _progress(wanted=with_progress) as on_progress, Producer(plan.writer) as producer:
            producer.queues(topic)  # before anything is read: fail if there is no writer or no topic
            for some in rows:
                _send(producer, plan, some, sent, on_progress=on_progress)
    except (StoreError, OSError, KeyboardInterrupt) as error:
        error.__notes__ = [sent.summary()]
        if as_json:
            _print(topic, sent, is_complete=False)
        raise
    if not sent.is_flushed:
        say("warning: stored, but some messages are not confirmed yet and may still be lost")
    if as_json:
        _print(topic, sent, is_complete=True)
    else:
        say(f"{topic}: {sent.summary()}{sent.places()}")


def _send(producer: Producer, plan: SendPlan, rows: Rows, sent: Sent, *, on_progress: _OnAcknowledged) -> None:
    def acknowledged(count: int) -> None:  # in the producer's own thread
        sent.messages += count
        on_progress(count)

    results: Sequence[SendResult]
    try:
        if not isinstance(rows, LineRows):
            results = _send_table(producer, plan, rows, on_acknowledged=acknowledged)
        elif plan.delay_level:
            results = send_delayed(
                producer, plan.topic, rows.rows, delay_level=plan.delay_level, on_acknowledged=acknowledged
            )
        else:
            results = send_lines(
                producer, plan.topic, rows.rows, batch_size=plan.batch_size, on_acknowledged=acknowledged
            )
    except StoreError as error:
        raise _numbered(error, rows) from error
    sent.add(results)


def _send_table(
    producer: Producer, plan: SendPlan, rows: TableRows, *, on_acknowledged: _OnAcknowledged
) -> Sequence[SendResult]:
    import pyarrow as pa

    names = rows.names
    try:
        return producer.send_table(
            rows.table,
            plan.topic,
            body=names.body,
            key=names.key,
            tag=names.tag,
            batch_size=plan.batch_size,
            on_acknowledged=on_acknowledged,
        ).results
    except pa.ArrowException as error:  # a column without a text form
        raise ArgumentIllegalError(f"from {rows.unit} {rows.first} on: {error}", **{rows.unit: rows.first}) from error


def _numbered(error: StoreError, rows: Rows) -> StoreError:
    """Return *error* with the number of its line or row in the input instead of in the table."""
    row = error.facts.get("row")
    if not isinstance(row, int):
        return error
    number = rows.first + row
    message = error.message.removeprefix(f"row {row}: ").removeprefix(f"row {row}, ")
    return type(error)(f"{rows.unit} {number}: {message}", **{rows.unit: number})


def _print(topic: str, sent: Sent, *, is_complete: bool) -> None:
    print_json(
        {
            "topic": topic,
            "acknowledged": sent.messages,
            "complete": is_complete,
            "end_physical_offset": sent.end_physical_offset,
            "queues": [{"queue_id": queue.queue_id, **part._asdict()} for queue, part in sorted(sent.queues.items())],
        }
    )


@contextlib.contextmanager
def _progress(*, wanted: bool) -> Iterator[_OnAcknowledged]:
    """Show the number of messages so far, and per second."""
    if not wanted:
        yield lambda _: None
        return
    from rich.progress import Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from tidemark.cli.terminal.output import console

    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} messages"),
        TaskProgressColumn(show_speed=True),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("sending", total=None)
        yield lambda count: progress.advance(task, count)
