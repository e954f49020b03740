"""`tidemark log …`: read the CommitLog's files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.output import Output, StreamOption, print_json, printable, time_text

if TYPE_CHECKING:
    from tidemark.index.log_walk import Damage

app = typer.Typer(no_args_is_help=True, help="Read the CommitLog's files without a service.")


@app.callback()
def _log() -> None:
    """Read the CommitLog's files without a service."""


@app.command(epilog="Example: tidemark log cat /path/to/store --max 10")
def cat(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A store, or its commitlog folder.", exists=True, file_okay=False)
    ],
    offset: Annotated[
        int | None,
        typer.Option("--offset", min=0, metavar="PHYS", help="Physical offset of the first record. Default: start."),
    ] = None,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Maximum number of messages. Default: all.")] = None,
    topic: Annotated[str | None, typer.Option(help="Print only messages of this topic. Default: all.")] = None,
    output: StreamOption = Output.TABLE,
) -> None:
    """Decode the records of a log, of Tidemark or of a RocketMQ broker, even during writes. Takes no lock.

    Damaged records are reported on standard error and skipped; the exit status is then 1.
    """
    from tidemark.cli.reading.log_records import decode_log, open_log_folder

    left = sys.maxsize if most is None else most
    is_damaged = False
    for decoded in decode_log(open_log_folder(directory), offset):
        for damage in decoded.damages:
            is_damaged = True
            _print_damage(damage, output)
        wanted = [one for one in decoded.messages if topic is None or one["topic"] == topic][:left]
        for message in wanted:
            _show(message, output)
        sys.stdout.flush()
        left -= len(wanted)
        if left <= 0:
            break
    raise typer.Exit(ExitStatus.FAILED if is_damaged else ExitStatus.OK)


def _show(message: dict[str, Any], output: Output) -> None:
    if output is Output.JSON:
        print_json(message)
        return
    from tidemark.cli.reading.message_text import body_text

    names = " ".join([f"tag={message['tag']}"] * bool(message["tag"]) + [f"key={key}" for key in message["keys"]])
    where = f"{message['physical_offset']:>14,}  {message['topic']}/{message['queue_id']}@{message['queue_offset']}"
    text = [where, time_text(message["store_timestamp_ms"]), *([names] if names else []), body_text(message)]
    sys.stdout.write(printable("  ".join(text)) + "\n")


def _print_damage(damage: Damage, output: Output) -> None:
    if output is Output.JSON:
        import orjson

        say(orjson.dumps({"damage": damage._asdict()}).decode())
    else:
        say(f"damage at {damage.physical_offset:,}, {damage.size:,} bytes: {damage.reason}")
