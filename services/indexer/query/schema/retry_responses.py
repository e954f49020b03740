"""The answer to sending messages back, as OpenAPI describes it; see responses.py."""

from __future__ import annotations

from pydantic import BaseModel, Field

from .responses import ProblemAnswer


class SentBackAnswer(BaseModel):
    """The stored copy of a message."""

    topic: str = Field(description="%RETRY%group, or %DLQ%group")
    dead_letter: bool = Field(description="true in %DLQ%group: the group does not get the message again")
    status: str = Field(description="as of an append")
    physical_offset: int
    offset_msg_id: str
    duplicate: bool = Field(description="true if an earlier request has stored this copy")
    deliver_timestamp_ms: int | None = Field(description="when the group gets the copy; null for a dead letter")


class RetryResultAnswer(BaseModel):
    """The result for one message of the request."""

    message_id: str | None = Field(None, description="as in the request")
    topic: str | None = Field(None, description="the message's topic; null if the message was not found by its id")
    queue_id: int | None = None
    queue_offset: int | None = None
    sent_back: SentBackAnswer | None = Field(description="the stored copy; null if the message was not stored again")
    problem: ProblemAnswer | None = Field(description="the reason why the message was not stored again; otherwise null")


class RetryAnswer(BaseModel):
    """One result per message of the request, in the request's order."""

    store: str
    group: str
    results: list[RetryResultAnswer]
