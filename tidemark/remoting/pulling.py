"""Pulls: codes 11 and 361, which have the same fields and answers."""

from __future__ import annotations

import enum
from typing import NamedTuple

from tidemark.format.primitives import java_hash
from tidemark.format.tags import ALL_TAGS, TAG_SEPARATOR, split_tags
from tidemark.remoting.field_table import INT32, INT64, TEXT, FieldTable, HeaderField, field_illegal

TAG, SQL92 = "TAG", "SQL92"  # values of PullMessageRequest.expression_type


class PullFlag(enum.IntFlag):
    """Bits of PullMessageRequest.sys_flag."""

    COMMIT_OFFSET = 1  # commit_offset is valid and is to be stored
    SUSPEND = 2  # the answer may wait for a message
    SUBSCRIPTION = 4  # the request carries its own subscription
    CLASS_FILTER = 8
    LITE = 16


_COMMIT_OFFSET, _SUSPEND, _SUBSCRIPTION = (
    int(PullFlag.COMMIT_OFFSET),
    int(PullFlag.SUSPEND),
    int(PullFlag.SUBSCRIPTION),
)


class PullMessageRequest(NamedTuple):
    """The values of a pull request."""

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int
    sys_flag: int = 0
    commit_offset: int = 0
    suspend_timeout_ms: int = 0
    subscription: str | None = None  # read it only if has_subscription: Go sends "" without the bit
    sub_version: int = 0
    expression_type: str = TAG
    max_msg_bytes: int | None = None

    @property
    def commits_offset(self) -> bool:
        return self.sys_flag & _COMMIT_OFFSET != 0

    @property
    def may_suspend(self) -> bool:
        return self.sys_flag & _SUSPEND != 0

    @property
    def has_subscription(self) -> bool:
        """False: the subscription is the one of the group's heartbeat."""
        return self.sys_flag & _SUBSCRIPTION != 0


PULL_REQUEST = FieldTable(
    PullMessageRequest,
    HeaderField("consumer_group", "consumerGroup", TEXT),
    HeaderField("topic", "topic", TEXT),
    HeaderField("queue_id", "queueId", INT32),
    HeaderField("queue_offset", "queueOffset", INT64),
    HeaderField("max_msg_nums", "maxMsgNums", INT32),
    HeaderField("sys_flag", "sysFlag", INT32),
    HeaderField("commit_offset", "commitOffset", INT64),
    HeaderField("suspend_timeout_ms", "suspendTimeoutMillis", INT64),
    HeaderField("subscription", "subscription", TEXT),
    HeaderField("sub_version", "subVersion", INT64),
    HeaderField("expression_type", "expressionType", TEXT),
    HeaderField("max_msg_bytes", "maxMsgBytes", INT32),
)


class PullMessageAnswer(NamedTuple):
    """The values of the answers 0, 19, 20 and 21."""

    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_which_broker_id: int = 0
    topic_sys_flag: int | None = 0
    group_sys_flag: int | None = 0


PULL_ANSWER = FieldTable(
    PullMessageAnswer,
    HeaderField("next_begin_offset", "nextBeginOffset", INT64),
    HeaderField("min_offset", "minOffset", INT64),
    HeaderField("max_offset", "maxOffset", INT64),
    HeaderField("suggest_which_broker_id", "suggestWhichBrokerId", INT64),
    HeaderField("topic_sys_flag", "topicSysFlag", INT32),
    HeaderField("group_sys_flag", "groupSysFlag", INT32),
)


class PullOffsets(NamedTuple):
    """The values of an answer that Tidemark's own consumers use."""

    next_begin_offset: int
    min_offset: int
    max_offset: int


PULL_OFFSETS = FieldTable(
    PullOffsets,
    HeaderField("next_begin_offset", "nextBeginOffset", INT64),
    HeaderField("min_offset", "minOffset", INT64),
    HeaderField("max_offset", "maxOffset", INT64),
)


def parse_tags(expression: str) -> frozenset[str] | None:
    """Return the tags of a TAG expression such as ``A || B``; None for all tags (``*`` or empty), as RocketMQ does.

    Unlike `parse_tag_expression`, a star among other tags is a tag of that name.

    Raises:
        FieldIllegalError: the expression has separators, but no tag.
    """
    if expression.strip() in ("", ALL_TAGS):
        return None
    tags = split_tags(expression)
    if not tags:
        raise field_illegal("subscription", expression, f"{ALL_TAGS}, or tags separated by {TAG_SEPARATOR}")
    return tags


def tag_hashes(expression: str) -> frozenset[int] | None:
    """Return the hashes by which queue entries are compared with a TAG expression; None for all. See `parse_tags`."""
    tags = parse_tags(expression)
    return None if tags is None else frozenset(map(java_hash, tags))
