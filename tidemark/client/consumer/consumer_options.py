"""ConsumerOptions: the keyword arguments of `Consumer` and `AsyncConsumer`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from tidemark.client.consumer.page_buffer import OutOfRange
from tidemark.client.consumer.start_offsets import Place
from tidemark.client.received_message import TopicQueue
from tidemark.client.values import Deserializer
from tidemark.client.wire.wire import Wire
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    from tidemark.client.consumer.consumer import Consumer, Where


class ConsumerOptions(TypedDict, total=False):
    """Keywords of `Consumer`, which documents their meaning and defaults."""

    group: str | None
    queues: Iterable[tuple[str, int]]
    url: str | Sequence[str] | None
    store: str | Path | None
    start: Place
    tag: str | Sequence[str] | None
    where: Where | None
    model: type[Any] | None
    value_deserializer: Deserializer | None
    auto_commit: bool
    auto_commit_interval_s: float
    out_of_range: OutOfRange
    on_assigned: Callable[[Consumer, frozenset[TopicQueue]], None] | None
    on_revoked: Callable[[Consumer, frozenset[TopicQueue]], None] | None
    max_messages: int | None
    max_bytes: int | None
    strategy: Literal["averagely", "consistent_hash"]
    session_timeout_s: float | None
    max_poll_interval_s: float
    timeout_s: float
    credentials: Credentials | None
    wire: Wire | None
