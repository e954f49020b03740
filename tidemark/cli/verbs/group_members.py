"""`tidemark group status | promote | hand-over`: the members of a replication group."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.terminal.confirm import confirm
from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.output import Output, OutputOption, print_facts, print_json, print_table
from tidemark.cli.terminal.service_addresses import WriterAddress

if TYPE_CHECKING:
    from tidemark.client.wire.group_admin import GroupMember, GroupStatus

PANEL = "Replication"
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_MemberName = Annotated[str, typer.Argument(metavar="MEMBER", help="Name of the coming writer.")]


def status(writer: WriterAddress = None, output: OutputOption = Output.TABLE) -> None:
    """Show the members of the store's replication group, as all of them describe themselves.

    --writer is the address of any member. Exit status 1: there is no writer, too few members are in sync, or a member
    does not answer or cannot follow the writer now.
    """
    from tidemark.client.wire.group_admin import ReplicationGroup

    seen = ReplicationGroup(writer).status()
    if output is Output.JSON:
        print_json({**asdict(seen), "in_sync": seen.in_sync})
    else:
        _print(seen)
    problems = _problems(seen)
    for problem in problems:
        say(problem)
    if problems:
        raise typer.Exit(ExitStatus.FAILED)


def _print(seen: GroupStatus) -> None:
    facts: dict[str, Any] = {
        "store": seen.store_name,
        "mode": seen.mode,
        "epoch": seen.epoch,
        "writer": seen.writer or "none",
        "in sync": f"{seen.in_sync}, at least {seen.min_in_sync} needed",
    }
    print_facts(facts)
    names = ("member", "role", "in sync", "end", "synced", "committed", "behind, bytes", "behind, s", "address")
    print_table(names, [_row(member) for member in seen.members])


def _row(member: GroupMember) -> tuple[Any, ...]:
    return (
        member.name,
        member.role,
        "yes" if member.is_in_sync else "no",
        member.end_offset,
        member.synced_offset,
        member.committed_offset,
        member.lag_bytes,
        None if member.lag_s is None else round(member.lag_s, 1),
        member.address,
    )


def _problems(seen: GroupStatus) -> list[str]:
    problems = [_fault(member) for member in seen.members if member.fault]
    if seen.writer is None:
        problems.append("no member that answers is the writer: start it, or promote another one")
    elif seen.in_sync < seen.min_in_sync:
        problems.append(f"{seen.in_sync} members are in sync and {seen.min_in_sync} are needed: appends are refused")
    return problems


def _fault(member: GroupMember) -> str:
    lacks = "answer" if member.role == "unreachable" else "follow the writer"
    return f"{member.name} does not {lacks}: {member.fault}"


def promote(
    member: _MemberName,
    writer: WriterAddress = None,
    stopped: Annotated[
        str, typer.Option("--i-have-stopped", metavar="WRITER", help="Name of the old writer, which you have stopped.")
    ] = "",
    unclean: Annotated[
        bool, typer.Option("--unclean", help="Also if the member may lack committed messages, which are lost then.")
    ] = False,
    yes: _Yes = False,
) -> None:
    """Make a replica the writer, after its writer was stopped for good or has failed.

    --writer is the address of any member. The old writer must not run any more: its log could then differ from the
    others. A member that does not have every committed message is refused without --unclean. With --replication=async
    no replica is known to have all, so that --unclean is always needed.
    """
    from tidemark.client.wire.group_admin import ReplicationGroup

    if unclean:
        confirm(f"Committed messages that {member} lacks will be lost. Promote it?", yes=yes)
    epoch = ReplicationGroup(writer).promote(member, stopped_writer=stopped, unclean=unclean)
    say(f"{member} is the writer of epoch {epoch}")


def hand_over(member: _MemberName, writer: WriterAddress = None) -> None:
    """Let the running writer hand its role to a replica that is in sync.

    Producers wait for a second or two, and nothing is lost or stored twice. --writer is the address of any member.
    """
    from tidemark.client.wire.group_admin import ReplicationGroup

    epoch = ReplicationGroup(writer).hand_over(member)
    say(f"{member} is the writer of epoch {epoch}")
