"""Answers about consumer groups, as OpenAPI describes them; see responses.py."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class GroupOffsetAnswer(BaseModel):
    """A group's offset in one queue, with the queue's bounds and the group's lag."""

    topic: str
    queue_id: int
    offset: int
    min_offset: int | None = Field(description="null if the queue no longer exists")
    max_offset: int | None
    below_min: int | None = Field(description="messages at or after the group's offset that retention has deleted")
    lag: int | None = Field(description="visible messages at or after the group's offset")


class GroupQueueAnswer(GroupOffsetAnswer):
    """A group's offset in one queue."""

    store: str
    group: str


class GroupOffsetsAnswer(BaseModel):
    """Offsets that were set together."""

    store: str
    group: str
    generation: int | None = Field(description="the group's current generation; null without members")
    offsets: list[GroupOffsetAnswer]


class HeldQueueAnswer(BaseModel):
    """A queue."""

    topic: str
    queue_id: int


class AssignedAnswer(HeldQueueAnswer):
    """A queue that a member may consume."""

    offset: int | None = Field(description="the next queue offset of the group; null if it has none")


class LeaseAnswer(BaseModel):
    """A member's lease: its generation, its session and the queues that it may consume."""

    store: str
    group: str
    member_id: str
    generation: int = Field(description="number of the group's current set of members and queues; it only rises")
    session_timeout_ms: int
    heartbeat_interval_ms: int
    members: list[str]
    assigned: list[AssignedAnswer] = Field(
        description="queues that the member may consume; it must release every other queue that it holds"
    )
    unknown_topics: list[str] = Field(description="topics that do not exist; each heartbeat looks them up again")


class MemberAnswer(BaseModel):
    """A living member."""

    member_id: str
    topics: list[str]
    session_timeout_ms: int
    heartbeat_age_ms: int = Field(description="time since the member's last heartbeat or join")
    holds: list[HeldQueueAnswer]


class ClientAnswer(BaseModel):
    """A living member that is one of RocketMQ's clients."""

    client_id: str
    address: str
    heartbeat_age_ms: int = Field(description="time since the client's last heartbeat")


class GroupAnswer(BaseModel):
    """A group's members and offsets."""

    store: str
    group: str
    generation: int | None = Field(description="null without members")
    strategy: Literal["averagely", "consistent_hash"] | None = Field(description="null without members")
    members: list[MemberAnswer] | None = Field(description="null if another process manages the groups")
    clients: list[ClientAnswer] | None = Field(
        description="members that are RocketMQ's clients, which divide the queues among themselves; null if another "
        "process manages the groups"
    )
    lag: int
    below_min: int
    queues: list[GroupOffsetAnswer]


class GroupSummary(BaseModel):
    """One group of the list."""

    group: str
    topics: list[str] = Field(description="topics in which the group has an offset, or to which a member subscribes")
    queues: int = Field(description="number of queues in which the group has an offset")
    members: int | None = Field(
        description="number of live members, with RocketMQ's clients; null if another process manages the groups"
    )


class GroupsAnswer(BaseModel):
    """All groups with offsets or members."""

    store: str
    groups: list[GroupSummary]
