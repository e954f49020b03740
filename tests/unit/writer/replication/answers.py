"""Members a, b and c of a group: their knowledge of it, and their descriptions of themselves."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.replication.group_state import GroupState

WRITER, REPLICA = 1, 2


@dataclass
class Answer:
    """A member's description."""

    member: str
    role: int
    state: bytes = b""
    promised_epoch: int = 0
    identity: str = ""
    end_offset: int = 0
    follows_writer: bool = False


@dataclass
class Follower:
    log_end: int = 0
    lost_s: float = 0.0
    promised: int = 0


def state(revision: int, in_sync: str, *, writer: str = "a", eligible: str = "", epoch: int = 65_536) -> GroupState:
    members = {name: f"{name}.{name * 4}" for name in "abc"}
    return GroupState(
        revision,
        epoch,
        members[writer],
        frozenset(members[name] for name in in_sync),
        frozenset(members[name] for name in eligible),
        2,
        "g",
    )
