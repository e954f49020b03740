"""Sends rows to a topic in order, and reports how many were acknowledged, even after a failure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidemark.cli.sending.line_input import LineRows, Rows, TableRows
from tidemark.cli.sending.send_lines import send_lines
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.output import print_json
from tidemark.client import Producer, SendResult, SendStatus
from tidemark.errors import ArgumentIllegalError, StoreError

_OnAcknowledged = Callable[[int], None]


@dataclass
class Sent:
    """The rows that the writer has acknowledged so far."""

    messages: int = 0
    end_physical_offset: int = 0  # all rows of finished chunks are visible once the watermark has reached it
    is_flushed: bool = True

    def summary(self) -> str:
        """Return the summary text."""
        return f"{self.messages:,} messages are acknowledged"


def send_rows(
    rows: Iterable[Rows], topic: str, writer: str | None, *, batch_size: int, as_json: bool, with_progress: bool
) -> None:
    """Send all rows, and report how many were acknowledged. with_progress: also show progress on standard error.

    Raises the StoreError or OSError of the input or the writer, or KeyboardInterrupt, with the report as a note.
    """
    sent = Sent()
    try:
        # Leaving the producer's block waits for answers, also after Ctrl-C: the reported number is final.
        with _progress(wanted=with_progress) as on_progress, Producer(writer) as producer:
            producer.queues(topic)  # before anything is read: fail if there is no writer or no topic
            for some in rows:
                _send(producer, topic, some, sent, batch_size=batch_size, on_progress=on_progress)
    except (StoreError, OSError, KeyboardInterrupt) as error:
        error.__notes__ = [sent.summary()]
        if as_json:
            _print(topic, sent, is_complete=False)
        raise
    if not sent.is_flushed:
        say("warning: stored, but some flushes are not confirmed yet: a power failure may lose these messages")
    if as_json:
        _print(topic, sent, is_complete=True)
    else:
        say(f"{topic}: {sent.summary()}")


def _send(
    producer: Producer, topic: str, rows: Rows, sent: Sent, *, batch_size: int, on_progress: _OnAcknowledged
) -> None:
    def acknowledged(count: int) -> None:  # in the producer's own thread
        sent.messages += count
        on_progress(count)

    results: Sequence[SendResult]
    try:
        if isinstance(rows, LineRows):
            results = send_lines(producer, topic, rows.rows, batch_size=batch_size, on_acknowledged=acknowledged)
        else:
            results = _send_table(producer, topic, rows, batch_size=batch_size, on_acknowledged=acknowledged)
    except StoreError as error:
        raise _numbered(error, rows) from error
    sent.end_physical_offset = max([sent.end_physical_offset, *(result.end_physical_offset for result in results)])
    sent.is_flushed &= all(result.status is SendStatus.PUT_OK for result in results)


def _send_table(
    producer: Producer, topic: str, rows: TableRows, *, batch_size: int, on_acknowledged: _OnAcknowledged
) -> Sequence[SendResult]:
    import pyarrow as pa

    names = rows.names
    try:
        return producer.send_table(
            rows.table,
            topic,
            body=names.body,
            key=names.key,
            tag=names.tag,
            batch_size=batch_size,
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
