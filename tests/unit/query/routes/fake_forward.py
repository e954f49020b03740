"""The way to a writer, as the routes see it, without a writer."""

from __future__ import annotations

from typing import Any, cast

from services.indexer.query.schema.request_bodies import AppendBody, TopicBody
from services.indexer.query.state.writer_client import SentBackMessage, WriterForward
from tests.unit.query.served_app import ServedApp
from tidemark.errors import StoreError
from tidemark.store.originals.topics import TopicConfig

AUTHORIZATION = "Bearer of-the-caller"


class FakeForward:
    """Keeps the calls, and answers each in the same way.

    is_flushed  False: the writer has stored a batch and could not confirm its flush
    is_new      False: a created topic exists already
    refusals    queue offset → error with which sending that message back fails
    """

    def __init__(self, *, is_flushed: bool = True, is_new: bool = True) -> None:
        self.is_flushed = is_flushed
        self.is_new = is_new
        self.failure: StoreError | None = None
        self.refusals: dict[int, StoreError] = {}
        self.appended: list[tuple[str, list[bytes], str]] = []  # (topic, bodies, request id)
        self.sent_back: list[SentBackMessage] = []
        self.groups: list[str] = []  # of the messages that were sent back, as the next two
        self.delay_levels: list[int] = []
        self.limits_of_tries: list[int | None] = []
        self.authorizations: list[str | None] = []

    @classmethod
    def put_into(cls, service: ServedApp, *, is_flushed: bool = True, is_new: bool = True) -> FakeForward:
        """Return one that *service* uses from now on."""
        forward = cls(is_flushed=is_flushed, is_new=is_new)
        service.state.writer = cast(WriterForward, forward)
        return forward

    async def append(
        self, topic: str, body: AppendBody, request_id: str, *, authorization: str | None
    ) -> tuple[bool, dict[str, Any]]:
        self._begin(authorization)
        self.appended.append((topic, [message.raw_body() for message in body.messages], request_id))
        return self.is_flushed, {"queue_offset": 41}

    async def send_back(
        self,
        group: str,
        original: SentBackMessage,
        *,
        delay_level: int,
        max_reconsume_times: int | None,
        authorization: str | None,
        origin_message_id: str = "",
        keep_unique_key: bool = False,
    ) -> dict[str, Any]:
        self._begin(authorization)
        if original.queue_offset in self.refusals:
            raise self.refusals[original.queue_offset]
        self.sent_back.append(original)
        self.groups.append(group)
        self.delay_levels.append(delay_level)
        self.limits_of_tries.append(max_reconsume_times)
        return {"topic": f"%RETRY%{group}"}

    async def create_topic(self, body: TopicBody, *, authorization: str | None) -> tuple[bool, TopicConfig]:
        self._begin(authorization)
        queues = body.queues or 8
        return self.is_new, TopicConfig(body.topic, read_queues=queues, write_queues=queues, attributes=body.attributes)

    async def close(self) -> None:
        pass

    def _begin(self, authorization: str | None) -> None:
        self.authorizations.append(authorization)
        if self.failure is not None:
            raise self.failure
