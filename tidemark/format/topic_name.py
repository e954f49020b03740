"""Names of topics that mean something by themselves (spec 10.1, 2.11)."""

from __future__ import annotations

from tidemark.format.tags import SCHEDULE_TOPIC

RETRY_PREFIX, DEAD_LETTER_PREFIX = "%RETRY%", "%DLQ%"  # of a group's topics: what failed, and what failed too often
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


def group_of(topic: str) -> str | None:
    """The group whose retry or dead-letter topic this is; None for any other topic."""
    for prefix in (RETRY_PREFIX, DEAD_LETTER_PREFIX):
        if topic.startswith(prefix):
            return topic.removeprefix(prefix)
    return None
