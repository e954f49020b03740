"""Answers about consumer groups, as OpenAPI describes them; see models.py."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class GroupOffsetAnswer(BaseModel):
    """Where a group goes on in one queue."""

    topic: str
    queue_id: int
    offset: int
    min_offset: int | None = Field(description="null where the queue is gone")
    max_offset: int | None
    below_min: int | None = Field(description="messages behind its offset that retention has deleted")
    lag: int | None = Field(description="visible messages the group has not had")


class GroupQueueAnswer(GroupOffsetAnswer):
    """One offset with its group."""

    store: str
    group: str


class GroupOffsetsAnswer(BaseModel):
    """Offsets that were set together."""

    store: str
    group: str
    generation: int | None = Field(description="the one of now; null without members")
    offsets: list[GroupOffsetAnswer]


class QueueAnswer(BaseModel):
    """A queue."""

    topic: str
    queue_id: int


class AssignedAnswer(QueueAnswer):
    """A queue that a member may consume."""

    offset: int | None = Field(description="where the group goes on; null where it has no offset")


class LeaseAnswer(BaseModel):
    """What a member is told."""

    store: str
    group: str
    member_id: str
    generation: int = Field(description="of members and queues; it only rises")
    session_timeout_ms: int
    heartbeat_interval_ms: int
    members: list[str]
    assigned: list[AssignedAnswer] = Field(description="its own, and held by nobody else; all others it must let go of")
    unknown_topics: list[str] = Field(description="there are none of these; looked up again at each heartbeat")


class MemberAnswer(BaseModel):
    """A living member."""

    member_id: str
    topics: list[str]
    session_timeout_ms: int
    heartbeat_age_ms: int = Field(description="since it was heard last")
    holds: list[QueueAnswer]


class GroupAnswer(BaseModel):
    """A group's members and offsets."""

    store: str
    group: str
    generation: int | None = Field(description="null without members")
    strategy: Literal["averagely", "consistent_hash"] | None = Field(description="null without members")
    members: list[MemberAnswer] | None = Field(description="null where another process keeps them")
    lag: int
    below_min: int
    queues: list[GroupOffsetAnswer]


class GroupSummary(BaseModel):
    """One group of the list."""

    group: str
    topics: list[str] = Field(description="with an offset, or with a member that subscribes to it")
    queues: int = Field(description="with an offset")
    members: int | None = Field(description="living ones; null where another process keeps them")


class GroupsAnswer(BaseModel):
    """All groups with offsets or members."""

    store: str
    groups: list[GroupSummary]
