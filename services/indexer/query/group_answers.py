"""Answers about consumer groups, as OpenAPI describes them; see models.py."""

from __future__ import annotations

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


class GroupAnswer(BaseModel):
    """A group's offsets."""

    store: str
    group: str
    lag: int
    below_min: int
    queues: list[GroupOffsetAnswer]


class GroupSummary(BaseModel):
    """One group of the list."""

    group: str
    topics: list[str]
    queues: int


class GroupsAnswer(BaseModel):
    """All groups with offsets."""

    store: str
    groups: list[GroupSummary]
