"""The topic names that clients may use, and the default number of queues (docs/format.md §15)."""

from __future__ import annotations

from tidemark.errors import TopicForbiddenError
from tidemark.format.topic_name import group_of, require_sendable_topic

BROKERS_TOPICS = frozenset(
    {"TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC"}
)  # a broker creates them for its own use, docs/format.md §9
BROKERS_PREFIX = "rmq_sys_"


def require_topic_name(name: str) -> None:
    """Raise TopicIllegalError or TopicForbiddenError if clients may not create a topic with this name."""
    require_sendable_topic(name)
    if name in BROKERS_TOPICS or name.startswith(BROKERS_PREFIX):
        raise TopicForbiddenError(
            f"topic {name} is reserved, because a broker creates it for its own use: choose another name", topic=name
        )


def usual_queues(topic: str, default: int) -> int:
    """Return the number of queues of a new topic: 1 for a group's retry or dead letter topic, otherwise *default*."""
    return default if group_of(topic) is None else 1
