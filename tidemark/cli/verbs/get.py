"""`tidemark get …`: single messages by id, physical offset or key."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from tidemark.cli.terminal.names import TopicName
from tidemark.cli.terminal.output import Output, OutputOption, print_facts, print_json
from tidemark.cli.terminal.service_addresses import QueryUrl, open_query, topic_path

app = typer.Typer(no_args_is_help=True, help="Get messages by id, physical offset or key.")
_WaitMs = Annotated[int, typer.Option(min=0, help="Milliseconds to wait for the message to become visible.")]
_OFFSET_ID = re.compile(r"[0-9A-Fa-f]{32}(?:[0-9A-Fa-f]{24})?(?:-[0-9]{1,9})?")
_OTHER_ID = "if this is a message id from the client: `tidemark get key TOPIC ID --unique`"


@app.callback()
def _get() -> None:
    """Get messages by id, physical offset or key."""


@app.command(epilog="Example: tidemark get message 7F00000100001F910000000000002000")
def message(
    message_id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="An offset message id: 32 or 56 hex digits, followed by -N for message N of an inner batch.",
        ),
    ],
    wait_ms: _WaitMs = 0,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Get a message by its offset message id. For a message id from the client, use `get key --unique`."""
    from tidemark.errors import ArgumentIllegalError, OffsetError

    if not _OFFSET_ID.fullmatch(message_id):
        what = (
            f"{message_id!r} is not an offset message id: 32 or 56 hex digits, with -N for message N of an inner batch"
        )
        error = ArgumentIllegalError(what, message_id=message_id)
        error.add_note(_OTHER_ID)
        raise error
    with open_query(query) as service:
        try:
            answer = service.get(f"/v1/messages/{message_id}", wait_ms=wait_ms, body_encoding="auto")
        except OffsetError as error:
            error.add_note(_OTHER_ID)
            raise
    _show(answer, output)


@app.command(epilog="Example: tidemark get at 8192")
def at(
    physical_offset: Annotated[
        int, typer.Argument(min=0, metavar="PHYS", help="Physical offset of the first byte of its record.")
    ],
    wait_ms: _WaitMs = 0,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Get the message of the record at a physical offset; for an inner batch, all of its messages."""
    with open_query(query) as service:
        answer = service.get(f"/v1/messages/at/{physical_offset}", wait_ms=wait_ms, body_encoding="auto")
    _show(answer, output)


@app.command(epilog="Example: tidemark get key orders order-4711")
def key(
    topic: TopicName,
    value: Annotated[str, typer.Argument(metavar="KEY", help="One of the message's keys.")],
    unique: Annotated[bool, typer.Option("--unique", help="KEY is a message id from the client.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of messages.")] = 32,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Get the messages that have a key, in log order. Exit status 3 if there are none."""
    from tidemark.errors import MessageNotFoundError

    name = "unique_key" if unique else "key"
    with open_query(query) as service:
        answer = service.get(f"{topic_path(topic)}/messages", limit=limit, body_encoding="auto", **{name: value})
    if not answer["messages"]:
        raise MessageNotFoundError(f"no visible message of {topic} has the key {value!r}", topic=topic, key=value)
    _show(answer, output)


def _show(answer: dict[str, Any], output: Output) -> None:
    if output is Output.JSON:
        print_json(answer)
        return
    from tidemark.cli.reading.message_text import message_facts

    of_all = {"topic": answer["topic"], "queue_id": answer.get("queue_id")}
    for number, one in enumerate(answer["messages"]):
        if number:
            typer.echo()
        print_facts(message_facts({**of_all, **one}))
