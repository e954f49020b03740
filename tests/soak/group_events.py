"""Operations of consumer groups in a soak's history: deliveries, handler results, positions, commits, dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Subscription:
    """A group of the soak: its topics, and the attempts its handlers have (0 for a group without handlers)."""

    group: str
    topics: tuple[str, ...]
    max_attempts: int = 0


class Handed(NamedTuple):
    """A message as a member received it. *topic* is the queue's topic: `%RETRY%group` for a retry."""

    topic: str
    queue_id: int
    queue_offset: int
    content: str
    attempt: int = 0  # reconsume_times
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The messages that one call handed out, in order. form: poll, table, async or handler."""

    client: str
    group: str
    form: str
    invoked: float
    completed: float
    messages: tuple[Handed, ...]


@dataclass(frozen=True, slots=True)
class Handled:
    """The end of one handler call, before the client learns of it."""

    client: str
    group: str
    at: float
    message: Handed
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Positioned:
    """A member continues a queue at *queue_offset* after a seek; None: at the group's offset, after an assignment."""

    client: str
    group: str
    at: float
    topic: str
    queue_id: int
    queue_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """The group's offsets as the service reported them: (topic, queue id, offset)."""

    group: str
    invoked: float
    completed: float
    offsets: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message of `%DLQ%group`, read after the drain."""

    group: str
    message: Handed


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A topic was created or deleted (action), at some moment between the two times."""

    topic: str
    action: str
    invoked: float
    completed: float


@dataclass(frozen=True, slots=True)
class ClientError:
    """An error that a member raised to its program."""

    client: str
    group: str
    at: float
    reason: str
    text: str = ""


GroupEvent = Subscription | Delivery | Handled | Positioned | Committed | DeadLetter | TopicChange | ClientError
GROUP_KINDS: dict[str, type[GroupEvent]] = {
    "subscription": Subscription,
    "delivery": Delivery,
    "handled": Handled,
    "positioned": Positioned,
    "committed": Committed,
    "dead_letter": DeadLetter,
    "topic_change": TopicChange,
    "client_error": ClientError,
}
