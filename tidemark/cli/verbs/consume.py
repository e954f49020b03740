"""The verb `consume`: prints messages of a topic."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tidemark.cli.reading.queue_places import HELP, METAVAR, PlaceKind, StartPlace
from tidemark.cli.terminal.output import print_json, remember_output
from tidemark.cli.terminal.service_addresses import QueryUrl, open_query

if TYPE_CHECKING:
    from tidemark.client import Query

EXAMPLE = "Example: tidemark consume orders --from earliest --max 10"


class _Selection(NamedTuple):
    """The requested queues, range and filter."""

    queue_ids: list[int]
    first: StartPlace
    last: StartPlace | None
    tags: list[str]
    follow: bool
    most: int | None


class OutputForm(enum.StrEnum):
    """Output forms of messages."""

    TABLE = "table"
    JSON = "json"
    RAW = "raw"


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    queue: Annotated[list[int] | None, typer.Option(min=0, help="Read this queue. Repeatable. Default: all.")] = None,
    start: Annotated[str, typer.Option("--from", metavar=METAVAR, help=f"Start position. {HELP}.")] = "earliest",
    end: Annotated[
        str | None,
        typer.Option(
            "--to", metavar=METAVAR, help="End position, exclusive. Default: visible end; with --follow, none."
        ),
    ] = None,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Maximum number of messages. Default: all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for further messages, until Ctrl-C.")] = False,
    tag: Annotated[
        list[str] | None, typer.Option(help="Print only messages with this tag. Repeatable. Default: all.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Print only messages with this key, from the index, in log order. --from and --to must be times."
        ),
    ] = None,
    form: Annotated[
        OutputForm,
        typer.Option(
            "--output",
            "-o",
            help="Output form; json: one line per message, raw: one body per line.",
            callback=remember_output,
        ),
    ] = OutputForm.TABLE,
    null: Annotated[
        bool, typer.Option("--null", "-0", help="With raw: end each body with a NUL byte instead of a newline.")
    ] = False,
    query: QueryUrl = None,
) -> None:
    """Print messages, queue by queue; with --follow, as they arrive. The order within a queue is kept.

    With --follow and without --queue and --to, also read queues that are added to the topic later, from their start.

    A body that is not text is printed as base64, except with raw. No offsets are committed.
    """
    first = StartPlace.parse(start, option="--from")
    last = None if end is None else StartPlace.parse(end, option="--to")
    if null and form is not OutputForm.RAW:
        raise typer.BadParameter("needs --output raw", param_hint="--null")
    if key is not None:
        _require_fit_for_key(first, last, others=bool(queue or tag or follow))
    with open_query(query) as service:
        if key is not None:
            messages = _by_key(service, topic, key, first, last)
        else:
            asked = _Selection(queue or [], first, last, tag or [], follow=follow, most=most)
            messages = _by_queue(service, topic, asked)
        _print(messages, form, most, terminator=b"\0" if null else b"\n")


def _require_fit_for_key(first: StartPlace, last: StartPlace | None, *, others: bool) -> None:
    is_time = first.kind in (PlaceKind.EARLIEST, PlaceKind.TIME) and (last is None or last.kind is PlaceKind.TIME)
    if others or not is_time:
        raise typer.BadParameter(
            "can only be combined with --max, and with times for --from and --to", param_hint="--key"
        )


def _by_key(
    service: Query, topic: str, key: str, first: StartPlace, last: StartPlace | None
) -> Iterator[list[dict[str, Any]]]:
    from tidemark.cli.reading.message_pages import pages_by_key

    from_ms = first.value if first.kind is PlaceKind.TIME else None
    return pages_by_key(service, topic, key, from_ms=from_ms, to_ms=None if last is None else last.value - 1)


def _by_queue(service: Query, topic: str, asked: _Selection) -> Iterator[list[dict[str, Any]]]:
    from tidemark.cli.reading.message_pages import MAX_PAGE, follow_queues, pages_of_queue, spans_of

    spans = spans_of(service, topic, asked.queue_ids, asked.first, asked.last, follow=asked.follow)
    page_size = min(MAX_PAGE, asked.most or MAX_PAGE)
    if asked.follow:
        new = not asked.queue_ids and asked.last is None
        yield from follow_queues(service, topic, spans, asked.tags, page_size=page_size, with_new_queues=new)
        return
    for span in spans:
        yield from pages_of_queue(service, topic, span, asked.tags, page_size=page_size)


def _print(pages: Iterator[list[dict[str, Any]]], form: OutputForm, most: int | None, *, terminator: bytes) -> None:
    """Print the pages, and flush standard output after each one."""
    from tidemark.cli.reading.message_text import HEADER, body_bytes, message_line

    left = sys.maxsize if most is None else most
    header = HEADER + "\n"
    for page in pages:
        for message in page[:left]:
            match form:
                case OutputForm.TABLE:
                    sys.stdout.write(f"{header}{message_line(message)}\n")
                    header = ""
                case OutputForm.JSON:
                    print_json(message)
                case OutputForm.RAW:
                    sys.stdout.buffer.write(body_bytes(message) + terminator)
        sys.stdout.flush()
        left -= len(page)
        if left <= 0:
            return
