"""`tidemark dlq …`: dead letters, and how to send them back."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from tidemark.cli.terminal.confirm import confirm
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.names import GroupName, complete_topic
from tidemark.cli.terminal.output import (
    Output,
    OutputOption,
    StreamOption,
    print_json,
    print_table,
    printable,
    time_text,
)
from tidemark.cli.terminal.service_addresses import QueryUrl, WriterAddress, open_query

app = typer.Typer(no_args_is_help=True, help="List, show and redrive a group's dead letters.")
_LINE = "{queue_id:>5}  {queue_offset:>10}  {stored:24}  {origin:24}  {attempts:>8}  {keys:16}  {body}"


@app.callback()
def _dlq() -> None:
    """List, show and redrive a group's dead letters."""


@app.command("list", epilog="Example: tidemark dlq list")
def list_groups(query: QueryUrl = None, output: OutputOption = Output.TABLE) -> None:
    """List the groups that have dead letters, their number, and how many no redrive has sent back."""
    from tidemark.cli.reading.dead_letters import all_dead_letters

    with open_query(query) as service:
        found = all_dead_letters(service)
    if output is Output.JSON:
        print_json({"groups": [one._asdict() for one in found]})
        return
    print_table(("group", "dead letters", "waiting"), [(one.group, one.messages, one.waiting) for one in found])


@app.command(epilog="Example: tidemark dlq show billing --max 10")
def show(
    group: GroupName,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Maximum number. Default: all.")] = None,
    query: QueryUrl = None,
    output: StreamOption = Output.TABLE,
) -> None:
    """Show a group's dead letters, oldest first in each queue, with their original topics."""
    from tidemark.cli.reading.dead_letters import dead_letter_topic, origin_of
    from tidemark.cli.reading.message_pages import pages_of_queue, spans_of
    from tidemark.cli.reading.queue_places import StartPlace

    left = sys.maxsize if most is None else most
    topic = dead_letter_topic(group)
    header = _LINE.format(
        queue_id="queue",
        queue_offset="offset",
        stored="stored",
        origin="from topic",
        attempts="attempts",
        keys="keys",
        body="body",
    )
    with open_query(query) as service:
        spans = spans_of(service, topic, [], StartPlace.parse("earliest", option="--from"), None, follow=False)
        for page in (page for span in spans for page in pages_of_queue(service, topic, span, [])):
            for message in page[:left]:
                dead = {**message, "origin_topic": origin_of(message["properties"])}
                if output is Output.JSON:
                    print_json(dead)
                    continue
                if header:
                    typer.echo(header)
                    header = ""
                typer.echo(_line(dead))
            left -= len(page)
            if left <= 0:
                return


@app.command(epilog="Example: tidemark dlq redrive billing --max 100 --yes")
def redrive(
    group: GroupName,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Maximum number. Default: all.")] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Send all to this topic. Default: each to its original topic.",
            autocompletion=complete_topic,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    query: QueryUrl = None,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send dead letters back with their number of attempts reset. They also stay among the dead letters.

    A redrive continues where the last one ended: its progress is stored as offsets of the group GROUP-redrive. Move
    them with `tidemark group reset` to send dead letters again. Every group that reads the topic gets the messages, not
    only this one.
    """
    from tidemark.cli.reading.dead_letters import Redrive, RedriveProgress, dead_letters_of
    from tidemark.cli.reading.dead_letters import redrive as send_back
    from tidemark.errors import StoreError

    done = RedriveProgress(0, 0)

    def acknowledged(progress: RedriveProgress) -> None:
        nonlocal done
        done = progress

    with open_query(query) as service:
        waiting = dead_letters_of(service, group).waiting
        if waiting:
            confirm(f"Send {min(waiting, most or waiting):,} dead letters of group {group} back?", yes=yes)
            try:
                send_back(service, writer, Redrive(group, most, to), on_acknowledged=acknowledged)
            except (StoreError, KeyboardInterrupt) as error:
                error.add_note(f"{done.stored:,} dead letters were sent back; the next redrive continues after them")
                raise
    left = waiting - done.passed
    if output is Output.JSON:
        print_json({"group": group, "sent": done.stored, "waiting": left})
    else:
        known = done.passed - done.stored
        before = f" ({known:,} more were stored by an earlier redrive)" if known else ""
        say(f"{done.stored:,} dead letters were sent back{before}, {left:,} are waiting")


def _line(message: dict[str, Any]) -> str:
    from tidemark.cli.reading.message_text import body_text

    return _LINE.format(
        queue_id=message["queue_id"],
        queue_offset=message["queue_offset"],
        stored=time_text(message["store_timestamp_ms"]),
        origin=printable(message["origin_topic"] or ""),
        attempts=message["reconsume_times"],
        keys=printable(" ".join(message["keys"])),
        body=printable(body_text(message)),
    ).rstrip()
