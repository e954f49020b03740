"""Names of topics: allowed names and names with a special meaning (docs/format.md §15)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from tidemark.errors import TopicForbiddenError, TopicIllegalError
from tidemark.format.primitives import MAX_TOPIC_SIZE_BYTES
from tidemark.format.tags import SCHEDULE_TOPIC

RETRY_PREFIX, DEAD_LETTER_PREFIX = (
    "%RETRY%",
    "%DLQ%",
)  # topics of a group for failed messages, and for messages that failed too often
LIGHT_QUEUE_PREFIX = "%LMQ%"  # topics whose units point at records of other topics (docs/format.md §2, §14)
MAX_GROUP_LENGTH = 120
FORBIDDEN_TOPICS = frozenset(  # RocketMQ: TopicValidator's "not allowed to send" set
    {
        SCHEDULE_TOPIC,
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
_SAFE = re.compile(r"(?:%RETRY%[%|a-zA-Z0-9_-]+\+)?[%|a-zA-Z0-9_-]+")
_GROUP = re.compile(r"[%|a-zA-Z0-9_-]{1,255}")
_MAX_NAME_LENGTH = 255
_SEPARATOR = "+"  # RocketMQ 5: between group and topic in the name of a retry topic
_DIGEST_LENGTH = 40


def is_topic_name(topic: str) -> bool:
    """Return True if the name can be a folder: RocketMQ's characters without dots and slashes.

    One plus sign is allowed, in the name of a group's retry topic for one topic.
    """
    return len(topic) <= _MAX_NAME_LENGTH and _SAFE.fullmatch(topic) is not None


def is_group_name(group: str) -> bool:
    """Return True if the name can be a group of consumers: RocketMQ's characters."""
    return _GROUP.fullmatch(group) is not None


def require_sendable_topic(topic: str) -> None:
    """Raise TopicIllegalError or TopicForbiddenError if clients may not send to *topic*."""
    if len(topic) > MAX_TOPIC_SIZE_BYTES:
        raise TopicIllegalError(
            f"a topic name must have at most {MAX_TOPIC_SIZE_BYTES} characters, this one has {len(topic)}",
            length=len(topic),
            limit=MAX_TOPIC_SIZE_BYTES,
        )
    if not is_topic_name(topic):
        illegal = next((f"; {sign!r} is none of them" for sign in topic if not _SAFE.fullmatch(sign)), "")
        raise TopicIllegalError(f"a topic name must have one or more of letters, digits and %|-_{illegal}", topic=topic)
    group = group_of(topic)
    if group is not None and not 1 <= len(group) <= MAX_GROUP_LENGTH:
        raise TopicIllegalError(
            f"a group name must have 1 to {MAX_GROUP_LENGTH} characters, this one has {len(group)}",
            topic=topic,
            length=len(group),
            limit=MAX_GROUP_LENGTH,
        )
    if topic in FORBIDDEN_TOPICS:
        raise TopicForbiddenError(f"clients cannot send to the system topic {topic}", topic=topic)


def group_of(topic: str) -> str | None:
    """Return the group whose retry or dead-letter topic this is; None for any other topic."""
    for prefix in (RETRY_PREFIX, DEAD_LETTER_PREFIX):
        if topic.startswith(prefix):
            return topic.removeprefix(prefix).partition(_SEPARATOR)[0]
    return None


def retry_topic(group: str) -> str:
    """Return the topic for failed messages of *group*."""
    return f"{RETRY_PREFIX}{group}"


def retry_topic_of(group: str, topic: str) -> str:
    """Return the topic for failed messages of *group* that were first sent to *topic*.

    RocketMQ 5's name, `%RETRY%group+topic`. If that is too long for a topic name: the first 79 characters of the
    group and, instead of the topic, 40 hexadecimal digits of SHA-256 over `group+topic`.
    """
    name = f"{RETRY_PREFIX}{group}{_SEPARATOR}{topic}"
    if len(name) <= MAX_TOPIC_SIZE_BYTES:
        return name
    digest = hashlib.sha256(f"{group}{_SEPARATOR}{topic}".encode()).hexdigest()[:_DIGEST_LENGTH]
    room = MAX_TOPIC_SIZE_BYTES - len(RETRY_PREFIX) - len(_SEPARATOR) - _DIGEST_LENGTH
    return f"{RETRY_PREFIX}{group[:room]}{_SEPARATOR}{digest}"


def retry_topics(group: str, topics: Iterable[str]) -> list[str]:
    """Return the retry topics that a member of *group* with subscriptions *topics* reads."""
    return [retry_topic(group), *(retry_topic_of(group, topic) for topic in topics)]
