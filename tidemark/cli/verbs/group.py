"""`tidemark group …`: show and move the offsets of consumer groups; show and change a replication group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tidemark.cli.reading.group_offsets import group_path, offsets_of
from tidemark.cli.reading.queue_places import (
    HELP,
    METAVAR,
    StartPlace,
    existing_offset_of,
    queues_of,
    require_one_queue,
)
from tidemark.cli.terminal.confirm import confirm
from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.names import GroupName, complete_topic
from tidemark.cli.terminal.output import Output, OutputOption, print_facts, print_json, print_table
from tidemark.cli.terminal.service_addresses import QueryUrl, open_query
from tidemark.cli.verbs.group_members import PANEL, hand_over, promote, status

if TYPE_CHECKING:
    from tidemark.client import Query

app = typer.Typer(
    no_args_is_help=True,
    help="Show consumer groups and reset their offsets; show a replication group and change its writer.",
)


class Move(NamedTuple):
    """One queue of a reset. before: None if the group has no offset yet."""

    topic: str
    queue_id: int
    before: int | None
    offset: int


@app.callback()
def _group() -> None:
    """Show consumer groups and reset their offsets; show a replication group and change its writer."""


app.command(rich_help_panel=PANEL, epilog="Example: tidemark group status")(status)
app.command(rich_help_panel=PANEL, epilog="Example: tidemark group promote b --i-have-stopped a")(promote)
app.command(rich_help_panel=PANEL, epilog="Example: tidemark group hand-over b")(hand_over)


@app.command("list", epilog="Example: tidemark group list")
def list_groups(query: QueryUrl = None, output: OutputOption = Output.TABLE) -> None:
    """List the groups that have members or offsets."""
    with open_query(query) as service:
        answer = service.get("/v1/groups")
    if output is Output.JSON:
        print_json(answer)
        return
    rows = [(one["group"], ", ".join(one["topics"]), one["queues"], one["members"]) for one in answer["groups"]]
    print_table(("group", "topics", "queues", "members"), rows)


@app.command(epilog="Example: tidemark group show billing")
def show(group: GroupName, query: QueryUrl = None, output: OutputOption = Output.TABLE) -> None:
    """Show a group's members and their queues; its offset in each queue, and the queue's bounds."""
    with open_query(query) as service:
        answer = service.get(group_path(group))
    if output is Output.JSON:
        print_json(answer)
        return
    if answer["members"]:
        print_facts({"generation": answer["generation"], "strategy": answer["strategy"]})
        members = [(one["member_id"], one["heartbeat_age_ms"], _held(one["holds"])) for one in answer["members"]]
        print_table(("member", "silent, ms", "holds"), members)
    if answer.get("clients"):  # an older service does not name them
        clients = [(one["client_id"], one["heartbeat_age_ms"], one["address"]) for one in answer["clients"]]
        print_table(("RocketMQ client", "silent, ms", "address"), clients)
    names = ("topic", "queue_id", "offset", "min_offset", "max_offset", "lag", "below_min")
    rows = [[queue[name] for name in names] for queue in answer["queues"]]
    print_table(("topic", "queue", "offset", "first offset", "end", "lag", "lost to retention"), rows)


@app.command(epilog="Example: tidemark group lag billing --max 1000")
def lag(
    group: GroupName,
    most: Annotated[
        int | None, typer.Option("--max", min=0, help="Exit with status 1 if the lag is greater. Default: no limit.")
    ] = None,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show how many visible messages a group has not consumed yet, by topic and in total."""
    with open_query(query) as service:
        answer = service.get(group_path(group))
    topics: dict[str, int] = {}
    for queue in answer["queues"]:
        topics[queue["topic"]] = topics.get(queue["topic"], 0) + (queue["lag"] or 0)
    if output is Output.JSON:
        print_json({"group": group, "lag": answer["lag"], "below_min": answer["below_min"], "topics": topics})
    else:
        print_table(("topic", "lag"), sorted(topics.items()))
        print_facts({"lag": answer["lag"], "lost to retention": answer["below_min"]})
    if most is not None and answer["lag"] > most:
        raise typer.Exit(ExitStatus.FAILED)


@app.command(epilog="Example: tidemark group reset billing --topic orders --to earliest --dry-run")
def reset(
    group: GroupName,
    topic: Annotated[str, typer.Option(help="Topic in which to set the offsets.", autocompletion=complete_topic)],
    to: Annotated[str, typer.Option(metavar=METAVAR, help=f"Position at which the group continues. {HELP}.")],
    queue: Annotated[list[int] | None, typer.Option(min=0, help="Set this queue. Repeatable. Default: all.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes without applying them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Set a group's offsets in a topic: all of them or none. Stop its consumers first."""
    from tidemark.client import TopicQueue
    from tidemark.client.consumer.group_member import commit_as_administrator

    place = StartPlace.parse(to, option="--to")
    with open_query(query) as service:
        moves = _plan(service, group, topic, queue or [], place)
        if output is not Output.JSON:
            print_table(("topic", "queue", "offset", "new offset"), moves)
        if not dry_run:
            confirm(f"Set {len(moves)} offsets of group {group}?", yes=yes)
            commit_as_administrator(service, group, [(TopicQueue(topic, move.queue_id), move.offset) for move in moves])
            say(f"{len(moves)} offsets were set")
    if output is Output.JSON:
        print_json({"group": group, "dry_run": dry_run, "offsets": [move._asdict() for move in moves]})


def _plan(service: Query, group: str, topic: str, queue_ids: list[int], place: StartPlace) -> list[Move]:
    """Return the offsets to set. Raises OffsetError for an offset that the queue does not have."""
    queues = queues_of(service, topic, queue_ids)
    require_one_queue(place, queues, option="--to")
    before = offsets_of(service, group, topic)
    moves = []
    for queue in queues:
        offset = existing_offset_of(service, topic, queue, place)
        moves.append(Move(topic, queue["queue_id"], before.get(queue["queue_id"]), offset))
    return moves


def _held(queues: list[dict[str, Any]]) -> str:
    """Return queue ids by topic, such as `orders 0 1 2, returns 0`."""
    by_topic: dict[str, list[int]] = {}
    for queue in queues:
        by_topic.setdefault(queue["topic"], []).append(queue["queue_id"])
    return ", ".join(f"{topic} {' '.join(map(str, sorted(ids)))}" for topic, ids in sorted(by_topic.items()))
