"""Which names of topics clients may use, and how many queues one gets that says nothing (spec 10.1)."""

from __future__ import annotations

from tidemark.errors import TopicForbiddenError, TopicIllegalError
from tidemark.format.primitives import MAX_TOPIC_SIZE_BYTES
from tidemark.format.topic_name import FORBIDDEN_TOPICS, MAX_GROUP_LENGTH, group_of
from tidemark.store.paths import is_topic_name

BROKERS_TOPICS = frozenset(
    {"TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC"}
)  # a broker makes them for itself, spec 1.7
BROKERS_PREFIX = "rmq_sys_"


def require_topic_name(name: str) -> None:
    """TopicIllegalError or TopicForbiddenError when clients may not make a topic of this name."""
    if not is_topic_name(name):
        raise TopicIllegalError("a topic's name has letters, digits and %|-_ only, and is not empty", topic=name[:255])
    if len(name) > MAX_TOPIC_SIZE_BYTES:
        raise TopicIllegalError("a topic's name is too long", length=len(name), limit=MAX_TOPIC_SIZE_BYTES)
    group = group_of(name)
    if group is not None and not 1 <= len(group) <= MAX_GROUP_LENGTH:
        raise TopicIllegalError(
            f"a group's name has 1 to {MAX_GROUP_LENGTH} characters",
            topic=name,
            length=len(group),
            limit=MAX_GROUP_LENGTH,
        )
    if name in FORBIDDEN_TOPICS:
        raise TopicForbiddenError("this topic takes no messages from clients", topic=name)
    if name in BROKERS_TOPICS or name.startswith(BROKERS_PREFIX):
        raise TopicForbiddenError("a broker makes this topic for itself", topic=name)


def usual_queues(topic: str, default: int) -> int:
    """Queues of a new topic: a group's own have one, others *default*."""
    return default if group_of(topic) is None else 1
