"""The verb `consume`: prints messages of a topic."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.reading.message_format import MessageFormat, OutputForm, message_format
from tidemark.cli.reading.message_template import TEMPLATE_HELP
from tidemark.cli.reading.queue_places import HELP, METAVAR, StartPlace
from tidemark.cli.reading.selection import Selection
from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.names import TopicName, complete_group
from tidemark.cli.terminal.output import remember_output
from tidemark.cli.terminal.service_addresses import QueryUrl, open_query

if TYPE_CHECKING:
    from tidemark.client import Query

EXAMPLE = "Example: tidemark consume orders --from -1h --max 10"


def consume(
    topic: TopicName,
    queue: Annotated[list[int] | None, typer.Option(min=0, help="Read this queue. Repeatable. Default: all.")] = None,
    start: Annotated[str, typer.Option("--from", metavar=METAVAR, help=f"Start position. {HELP}.")] = "earliest",
    end: Annotated[
        str | None,
        typer.Option(
            "--to", metavar=METAVAR, help="End position, exclusive. Default: visible end; with --follow, none."
        ),
    ] = None,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Maximum number of messages. Default: all.")] = None,
    tail: Annotated[
        int | None,
        typer.Option(min=1, help="Print only the newest N messages of all queues together, by store time."),
    ] = None,
    by_time: Annotated[bool, typer.Option("--by-time", help="Print the messages of all queues by store time.")] = False,
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
    group: Annotated[
        str | None,
        typer.Option(
            help="Read as a member of this group, from its offsets, and commit each message after it is printed. "
            "--from applies to queues in which the group has no offset.",
            autocompletion=complete_group,
        ),
    ] = None,
    form: Annotated[
        OutputForm,
        typer.Option(
            "--output",
            "-o",
            help="Output form; json: one line per message, raw: one body per line.",
            callback=remember_output,
            is_eager=True,
        ),
    ] = OutputForm.TABLE,
    null: Annotated[
        bool, typer.Option("--null", "-0", help="With raw: end each body with a NUL byte instead of a newline.")
    ] = False,
    template: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help=f"Print each message as this text, such as '%k\\t%b\\n'. {TEMPLATE_HELP}."),
    ] = None,
    query: QueryUrl = None,
) -> None:
    """Print messages, queue by queue; with --follow, as they arrive. The order within a queue is kept.

    With --follow and without --queue and --to, also read queues that are added to the topic later, from their start.

    A body that is not text is printed as base64, except with raw and a template. A template writes the bytes as they
    are; on a terminal it escapes control characters.

    No offsets are committed, except with --group: then each message is committed once its last byte is written, also
    if Ctrl-C, SIGTERM or a closed pipe ends the command. A reader such as `head` may be given more messages than it
    uses; --max sets the exact number.
    """
    first = StartPlace.parse(start, option="--from")
    last = None if end is None else StartPlace.parse(end, option="--to")
    asked = Selection(
        queue or [], first, last, tag or [], key, group, follow=follow, by_time=by_time, tail=tail, most=most
    )
    asked.require_fit()
    if null and form is not OutputForm.RAW:
        raise typer.BadParameter("needs --output raw", param_hint="--null")
    if template is not None and form is not OutputForm.TABLE:
        raise typer.BadParameter(f"cannot be combined with --output {form.value}", param_hint="--template")
    shown = message_format(form, terminator=b"\0" if null else b"\n", template=template)
    with open_query(query) as service:
        if group is not None:
            _print_as_member(service, topic, group, asked, shown)
        else:
            from tidemark.cli.reading.selected_pages import selected_pages

            _print(selected_pages(service, topic, asked), shown, most)


def _print_as_member(service: Query, topic: str, group: str, asked: Selection, shown: MessageFormat) -> None:
    from tidemark.cli.reading.group_offsets import require_group
    from tidemark.cli.reading.group_reader import GroupRead, print_as_member
    from tidemark.cli.reading.queue_places import queues_of
    from tidemark.cli.terminal.stop_request import stop_request
    from tidemark.client import TopicQueue

    require_group(group)
    queues = [queue for queue in queues_of(service, topic, []) if queue["max_offset"] > queue["min_offset"]]
    ends = {TopicQueue(topic, queue["queue_id"]): queue["max_offset"] for queue in queues}
    wanted = GroupRead(topic, group, asked.first, asked.tags, asked.most, None if asked.follow else ends)
    with stop_request() as stop:
        printed = print_as_member(service.url, wanted, shown, stop)
    if stop:
        is_interrupt = stop.signal_number == signal.SIGINT
        say("interrupted" if is_interrupt else "terminated")
        say(f"messages printed and committed: {printed:,}")
        raise typer.Exit(ExitStatus.INTERRUPTED if is_interrupt else ExitStatus.TERMINATED)


def _print(pages: Iterator[list[dict[str, Any]]], form: MessageFormat, most: int | None) -> None:
    """Print the pages, and flush standard output after each one."""
    left = sys.maxsize if most is None else most
    head = form.head
    for page in pages:
        for message in page[:left]:
            sys.stdout.buffer.write(head + form.encode(message))
            head = b""
        sys.stdout.flush()
        left -= len(page)
        if left <= 0:
            return
