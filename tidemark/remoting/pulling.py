"""Pulls: codes 11 and 361, which have the same fields and answers."""

from __future__ import annotations

import enum
from typing import NamedTuple

from tidemark.format.primitives import java_hash
from tidemark.format.tags import ALL_TAGS, TAG_SEPARATOR
from tidemark.remoting.field_table import INT32, INT64, TEXT, Field, FieldTable, field_illegal

TAG, SQL92 = "TAG", "SQL92"  # values of PullRequest.expression_type


class PullFlag(enum.IntFlag):
    """Bits of PullRequest.sys_flag."""

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


class PullRequest(NamedTuple):
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
    PullRequest,
    Field("consumer_group", "consumerGroup", TEXT),
    Field("topic", "topic", TEXT),
    Field("queue_id", "queueId", INT32),
    Field("queue_offset", "queueOffset", INT64),
    Field("max_msg_nums", "maxMsgNums", INT32),
    Field("sys_flag", "sysFlag", INT32),
    Field("commit_offset", "commitOffset", INT64),
    Field("suspend_timeout_ms", "suspendTimeoutMillis", INT64),
    Field("subscription", "subscription", TEXT),
    Field("sub_version", "subVersion", INT64),
    Field("expression_type", "expressionType", TEXT),
    Field("max_msg_bytes", "maxMsgBytes", INT32),
)


class PullAnswer(NamedTuple):
    """The values of the answers 0, 19, 20 and 21."""

    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_which_broker_id: int = 0
    topic_sys_flag: int | None = 0
    group_sys_flag: int | None = 0


PULL_ANSWER = FieldTable(
    PullAnswer,
    Field("next_begin_offset", "nextBeginOffset", INT64),
    Field("min_offset", "minOffset", INT64),
    Field("max_offset", "maxOffset", INT64),
    Field("suggest_which_broker_id", "suggestWhichBrokerId", INT64),
    Field("topic_sys_flag", "topicSysFlag", INT32),
    Field("group_sys_flag", "groupSysFlag", INT32),
)


def parse_tags(expression: str) -> frozenset[str] | None:
    """Return the tags of a TAG expression such as ``A || B``; None for all tags (``*`` or empty).

    Raises:
        FieldIllegalError: the expression has separators, but no tag.
    """
    if expression.strip() in ("", ALL_TAGS):
        return None
    tags = frozenset(tag for piece in expression.split(TAG_SEPARATOR) if (tag := piece.strip()))
    if not tags:
        raise field_illegal("subscription", expression, f"{ALL_TAGS}, or tags separated by {TAG_SEPARATOR}")
    return tags


def tag_hashes(expression: str) -> frozenset[int] | None:
    """Return the hashes by which queue entries are compared with a TAG expression; None for all. See `parse_tags`."""
    tags = parse_tags(expression)
    return None if tags is None else frozenset(map(java_hash, tags))
