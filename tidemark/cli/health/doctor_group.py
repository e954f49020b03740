"""The check of `doctor` for the members of a replication group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.cli.health.doctor_services import TIMEOUT_S, is_refused
from tidemark.cli.health.finding import DoctorFinding, Level
from tidemark.cli.terminal.service_addresses import DEFAULT_WRITER_ADDRESS

if TYPE_CHECKING:
    from tidemark.client.wire.group_admin import GroupStatus

_NAME = "group"


def group_check(address: str | None) -> DoctorFinding | None:
    """Check the group of the writer at *address*; None if no member of a group answers there."""
    from tidemark.client.wire.group_admin import ReplicationGroup
    from tidemark.errors import StoreError

    if is_refused(address or DEFAULT_WRITER_ADDRESS):
        return None
    try:
        return group_finding(ReplicationGroup(address, timeout_s=TIMEOUT_S).status())
    except StoreError:  # a store of its own, or another program, which the writer's check names
        return None


def group_finding(status: GroupStatus) -> DoctorFinding:
    """Judge the state of a group."""
    away = [member for member in status.members if member.role == "unreachable"]
    behind = [member for member in status.members if not member.is_in_sync]
    seen = (
        f"{status.group}: writer {status.writer or 'none'}, {status.in_sync} of {len(status.members)} members in sync, "
        f"{status.min_in_sync} needed"
    )
    if status.writer is None:
        step = "start the missing members; without etcd: tidemark group promote"
        return DoctorFinding(Level.FAIL, _NAME, seen, step)
    if status.mode == "sync" and status.in_sync < status.min_in_sync:
        return DoctorFinding(Level.FAIL, _NAME, f"{seen}: appends are refused", "bring a member back")
    if away or behind:
        names = ", ".join(sorted({member.name for member in (*away, *behind)}))
        return DoctorFinding(Level.WARN, _NAME, f"{seen}: {names} missing or behind", "see tidemark group status")
    if status.mode == "sync" and len(status.members) <= status.min_in_sync:
        step = "add a member, or set TIDEMARK_MIN_IN_SYNC lower"
        return DoctorFinding(Level.WARN, _NAME, f"{seen}: the loss of any member stops appends", step)
    return DoctorFinding(Level.OK, _NAME, seen)
