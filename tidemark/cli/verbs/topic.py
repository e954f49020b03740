"""`tidemark topic …`: create, alter, delete, list and show topics.

create, alter and delete call the writer. list and show call the query service, which also knows the readable range of
each queue, and is the only service of an attached store.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.reading.queue_places import offset_at_time
from tidemark.cli.reading.store_times import TIME_HELP, parse_time
from tidemark.cli.terminal.confirm import confirm
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.names import TopicName
from tidemark.cli.terminal.output import Output, OutputOption, print_facts, print_json, print_table, time_text
from tidemark.cli.terminal.pairs import pair_of, pairs_of
from tidemark.cli.terminal.service_addresses import QueryUrl, WriterAddress, open_query, topic_path

if TYPE_CHECKING:
    from tidemark.client import Topic, Topics

app = typer.Typer(no_args_is_help=True, help="Create, list, show, alter and delete topics.")
_NewName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


class Permission(enum.StrEnum):
    """Operations that clients may perform on a topic."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read-write"


_BITS = {Permission.READ: 4, Permission.WRITE: 2, Permission.READ_WRITE: 6}  # RocketMQ's PermName
_INHERIT = 1
_KINDS = {  # values of the attribute queue.type
    "SimpleCQ": "SimpleCQ: each message is a record of its own",
    "BatchCQ": "BatchCQ: each batch is stored as one record",
}


@app.callback()
def _topic() -> None:
    """Create, list, show, alter and delete topics."""


@app.command(epilog="Example: tidemark topic create orders --queues 8")
def create(
    name: _NewName,
    queues: Annotated[int, typer.Option(min=0, help="Number of queues; 0: the writer's default.")] = 0,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            "-a",
            metavar="NAME=VALUE",
            help="Set an attribute, such as queue.type=BatchCQ. Repeatable.",
        ),
    ] = None,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a topic; succeed without a change if a topic of the same shape exists."""
    from tidemark.client import Topics

    attributes = pairs_of(attribute or [], option="--attribute")
    with Topics(writer) as topics:
        existed = _exists(topics, name)
        made = topics.create(name, queues=queues, attributes=attributes)
    _print_topic(made, output, created=None if existed is None else not existed)


def _exists(topics: Topics, name: str) -> bool | None:
    """Return True if the topic exists; None if this caller is not allowed to know."""
    from tidemark.errors import ForbiddenError, TopicIllegalError, TopicNotFoundError

    try:
        topics.describe(name)
    except (TopicNotFoundError, TopicIllegalError):
        return False
    except ForbiddenError:
        return None
    return True


@app.command("list", epilog="Example: tidemark topic list --output json")
def list_topics(query: QueryUrl = None, output: OutputOption = Output.TABLE) -> None:
    """List all topics."""
    with open_query(query) as service:
        answer = service.get("/v1/topics")
    if output is Output.JSON:
        print_json(answer)
        return
    rows = [
        (
            topic["topic"],
            topic["queue_type"],
            topic["read_queues"],
            topic["write_queues"],
            _attributes(topic["attributes"]),
        )
        for topic in answer["topics"]
    ]
    print_table(("topic", "kind", "read queues", "write queues", "attributes"), rows)


@app.command(epilog="Example: tidemark topic show orders --at 2026-01-31T12:00:00Z")
def show(
    name: TopicName,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=f"Also show the first message of each queue that was stored at this time or later. {TIME_HELP}.",
        ),
    ] = None,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a topic, and the range of readable offsets in each of its queues."""
    moment = None if at is None else parse_time(at, option="--at")
    with open_query(query) as service:
        answer = service.get(topic_path(name))
        if moment is not None:
            answer["at_time_ms"] = moment
            for queue in answer["queues"]:
                found = offset_at_time(service, name, queue["queue_id"], moment)
                queue["at_time"] = {key: found[key] for key in ("offset", "store_timestamp_ms")}
    if output is Output.JSON:
        print_json(answer)
        return
    print_facts(
        {
            "topic": answer["topic"],
            "kind": _KINDS.get(answer["queue_type"], answer["queue_type"]),
            "queues": f"{answer['read_queues']} to read, {answer['write_queues']} to write",
            "permission": _permission_text(answer["permission"]),
            "attributes": _attributes(answer["attributes"]),
        }
    )
    rows = [
        (queue["queue_id"], queue["min_offset"], queue["max_offset"], _count(queue), *_at_time(queue))
        for queue in answer["queues"]
    ]
    print_table(("queue", "first offset", "end", "messages", *(() if at is None else ("at the time", "stored"))), rows)


@app.command(epilog="Example: tidemark topic alter orders --queues 16 --attribute +message.type=NORMAL")
def alter(
    name: TopicName,
    queues: Annotated[
        int | None, typer.Option(min=1, help="Number of queues to write and to read. Default: unchanged.")
    ] = None,
    read_queues: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of queues to read, if different. Queues beyond it are not read. Default: --queues."
        ),
    ] = None,
    permission: Annotated[
        Permission | None, typer.Option(help="Operations that clients may perform. Default: unchanged.")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", "-a", metavar="+NAME=VALUE|-NAME", help="Set or remove an attribute. Repeatable."),
    ] = None,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Change a topic; options that are not given change nothing.

    To reduce the queues: first use `--queues 4 --read-queues 8`; once the last queues are consumed, `--read-queues 4`.
    """
    from tidemark.client import Topics

    attributes = dict(map(_signed_attribute, attribute or []))
    if (queues, read_queues, permission) == (None, None, None) and not attributes:
        raise typer.BadParameter("give at least one of --queues, --read-queues, --permission and --attribute")
    with Topics(writer) as topics:
        changed = topics.alter(
            name,
            write_queues=queues,
            read_queues=read_queues if read_queues is not None else queues,
            permission=None if permission is None else _BITS[permission],
            attributes=attributes,
        )
    _print_topic(changed, output)


@app.command(epilog="Example: tidemark topic delete orders --yes")
def delete(
    name: TopicName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete a topic. Its messages cannot be read any more, and its queue offsets are never used again."""
    from tidemark.client import Topics

    with Topics(writer) as topics:
        topics.describe(name)  # fail before the question if there is no such topic
        confirm(f"Delete topic {name} with all its messages?", yes=yes)
        topics.delete(name)
    if output is Output.JSON:
        print_json({"topic": name, "deleted": True})
    else:
        say(f"deleted {name}")


def _permission_text(bits: int) -> str:
    """Return a topic's permission in words: that of its clients, and whether other topics inherit it."""
    of_clients = next((name.value for name, known in _BITS.items() if known == bits & ~_INHERIT), "none")
    return f"{of_clients}, inherited" if bits & _INHERIT else of_clients


def _print_topic(topic: Topic, output: Output, *, created: bool | None = None) -> None:
    """Print the topic from the writer's answer. created: False if it existed before; None if that is not known."""
    if output is Output.JSON:
        print_json(
            {
                "topic": topic.name,
                **({} if created is None else {"created": created}),
                "read_queues": topic.read_queues,
                "write_queues": topic.write_queues,
                "permission": topic.permission,
                "attributes": dict(topic.attributes),
            }
        )
        return
    print_facts(
        {
            "topic": topic.name + ("" if created is None else ": created" if created else ": exists, unchanged"),
            "queues": f"{topic.read_queues} to read, {topic.write_queues} to write",
            "permission": _permission_text(topic.permission),
            "attributes": _attributes(topic.attributes),
        }
    )


def _signed_attribute(text: str) -> tuple[str, str]:
    """Parse +NAME=VALUE or -NAME."""
    if text.startswith("-") and len(text) > 1 and "=" not in text:
        return text, ""
    if not text.startswith("+"):
        raise typer.BadParameter(f"{text!r} is neither +NAME=VALUE nor -NAME", param_hint="--attribute")
    return pair_of(text, option="--attribute")


def _attributes(attributes: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(attributes.items()))


def _at_time(queue: dict[str, Any]) -> tuple[Any, ...]:
    """Return the offset at the asked time and the store time of its message; () if no time was asked for."""
    found = queue.get("at_time")
    if found is None:
        return ()
    stored_ms = found["store_timestamp_ms"]
    return found["offset"], "no message yet" if stored_ms is None else time_text(stored_ms)


def _count(queue: dict[str, Any]) -> int:
    return int(queue["max_offset"] - queue["min_offset"])
