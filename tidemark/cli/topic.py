"""`tidemark topic …`. create and delete ask the writer; list and show the query service, which also knows what may be
read, and of an attached store is the only one there is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidemark.cli.addresses import QueryUrl, WriterAddress, open_query, topic_path
from tidemark.cli.confirm import confirm
from tidemark.cli.failures import say
from tidemark.cli.output import Output, OutputOption, print_facts, print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Create, list, show and delete topics.")
_Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


@app.callback()
def _topic() -> None:
    """Create, list, show and delete topics."""


@app.command(epilog="Example: tidemark topic create orders --queues 8")
def create(
    name: _Name,
    queues: Annotated[int, typer.Option(min=0, help="How many; 0: the writer's default.")] = 0,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", "-a", metavar="NAME=VALUE", help="Such as queue.type=BatchCQ. May be repeated."),
    ] = None,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a topic; one of the same shape that exists already is as good."""
    from tidemark.client import Topics

    attributes = dict(map(_attribute, attribute or []))
    with Topics(writer) as topics:
        made = topics.create(name, queues=queues, attributes=attributes)
    if output is Output.JSON:
        print_json(
            {
                "topic": made.name,
                "read_queues": made.read_queues,
                "write_queues": made.write_queues,
                "permission": made.permission,
                "attributes": dict(made.attributes),
            }
        )
    else:
        print_facts({"topic": made.name, "queues": made.write_queues, "attributes": _attributes(made.attributes)})


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


@app.command(epilog="Example: tidemark topic show orders")
def show(name: _Name, query: QueryUrl = None, output: OutputOption = Output.TABLE) -> None:
    """Show a topic, and from where to where each of its queues may be read."""
    with open_query(query) as service:
        answer = service.get(topic_path(name))
    if output is Output.JSON:
        print_json(answer)
        return
    print_facts(
        {
            "topic": answer["topic"],
            "kind": answer["queue_type"],
            "queues": f"{answer['read_queues']} to read, {answer['write_queues']} to write",
            "permission": answer["permission"],
            "attributes": _attributes(answer["attributes"]),
        }
    )
    rows = [(queue["queue_id"], queue["min_offset"], queue["max_offset"], _count(queue)) for queue in answer["queues"]]
    print_table(("queue", "first offset", "end", "messages"), rows)


@app.command(epilog="Example: tidemark topic delete orders --yes")
def delete(
    name: _Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete a topic. Its messages cannot be read any more, and its queue offsets are never used again."""
    from tidemark.client import Topics

    with Topics(writer) as topics:
        topics.describe(name)  # before the question: there is such a topic
        confirm(f"Delete topic {name} with all its messages?", yes=yes)
        topics.delete(name)
    if output is Output.JSON:
        print_json({"topic": name, "deleted": True})
    else:
        say(f"deleted {name}")


def _attribute(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--attribute")
    return name, value


def _attributes(attributes: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(attributes.items()))


def _count(queue: dict[str, Any]) -> int:
    return int(queue["max_offset"] - queue["min_offset"])
