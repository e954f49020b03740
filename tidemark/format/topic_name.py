"""Names of topics that mean something by themselves (spec 10.1)."""

from __future__ import annotations

from tidemark.format.tags import SCHEDULE_TOPIC

RETRY_PREFIX = "%RETRY%"
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
