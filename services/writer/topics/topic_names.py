"""Which names of topics clients may use, and how many queues one gets that says nothing (docs/format.md §15)."""

from __future__ import annotations

from tidemark.errors import TopicForbiddenError
from tidemark.format.topic_name import group_of, require_sendable_topic

BROKERS_TOPICS = frozenset(
    {"TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC"}
)  # a broker makes them for itself, docs/format.md §9
BROKERS_PREFIX = "rmq_sys_"


def require_topic_name(name: str) -> None:
    """TopicIllegalError or TopicForbiddenError when clients may not make a topic of this name."""
    require_sendable_topic(name)
    if name in BROKERS_TOPICS or name.startswith(BROKERS_PREFIX):
        raise TopicForbiddenError("a broker makes this topic for itself", topic=name)


def usual_queues(topic: str, default: int) -> int:
    """Queues of a new topic: a group's own have one, others *default*."""
    return default if group_of(topic) is None else 1
