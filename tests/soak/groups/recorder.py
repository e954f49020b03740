"""Recorder: records each message of one member before the member does anything else with it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.soak.group_events import ClientError, Delivery, Handed, Handled, Positioned
from tests.soak.history import HistoryFile
from tests.soak.messages import content_of_body
from tidemark.client import ReceivedMessage, TopicQueue
from tidemark.errors import StoreError
from tidemark.format.topic_name import RETRY_PREFIX
from tidemark.status import status_of

if TYPE_CHECKING:
    import pyarrow as pa


class Recorder:
    """The history of one member of *group*. A member that leaves and joins again gets a new recorder."""

    def __init__(self, history: HistoryFile, client: str, group: str) -> None:
        self._history = history
        self._client = client
        self._group = group

    def delivered(self, form: str, invoked: float, messages: Iterable[ReceivedMessage]) -> None:
        """Record the messages that one call returned."""
        self._deliver(form, invoked, tuple(self._handed(message) for message in messages))

    def delivered_table(self, invoked: float, table: pa.Table | None) -> None:
        """Record the rows of a table."""
        if table is not None:
            rows = table.select(["topic", "queue_id", "queue_offset", "body"]).to_pylist()
            self._deliver("table", invoked, tuple(_handed_row(row) for row in rows))

    def _deliver(self, form: str, invoked: float, messages: tuple[Handed, ...]) -> None:
        if messages:
            self._history.add(Delivery(self._client, self._group, form, invoked, time.monotonic(), messages))

    def handled(self, message: ReceivedMessage, *, failed: bool) -> None:
        """Record a handler's result."""
        handed = self._handed(message)
        now = time.monotonic()
        self._history.add(Handled(self._client, self._group, now, handed, failed))

    def assigned(self, queues: Iterable[TopicQueue]) -> None:
        """Record queues that the member starts to read."""
        for queue in queues:
            self._history.add(Positioned(self._client, self._group, time.monotonic(), *queue))

    def sought(self, queue: TopicQueue, queue_offset: int) -> None:
        """Record a seek that was accepted."""
        self._history.add(Positioned(self._client, self._group, time.monotonic(), *queue, queue_offset))

    def raised(self, error: BaseException) -> None:
        """Record an error of the client."""
        reason = status_of(error).reason if isinstance(error, StoreError) else type(error).__name__
        self._history.add(ClientError(self._client, self._group, time.monotonic(), reason, str(error)[:300]))

    def _handed(self, message: ReceivedMessage) -> Handed:
        """Return the message.

        A handler sees a retry under its origin's topic; its queue and offset are those of the retry topic.
        """
        is_retry = message.reconsume_times > 0
        return Handed(
            f"{RETRY_PREFIX}{self._group}" if is_retry else message.topic,
            message.queue_id,
            message.queue_offset,
            content_of_body(message.body),
            message.reconsume_times,
            message.message_id or "",
        )


def _handed_row(row: dict[str, Any]) -> Handed:
    return Handed(row["topic"], row["queue_id"], row["queue_offset"], content_of_body(row["body"]))
