from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from services.writer.log.commit_log import CommitLog
from services.writer.log.committed_offset import Committed
from services.writer.rpc.committed_bytes import LogReader
from services.writer.rpc.send_back import Copy, SendBack
from services.writer.topics.topic_table import TopicTable, topic_of
from tests.builders import BORN_MS, STORE_HOST, properties, record_bytes
from tidemark.errors import (
    ArgumentIllegalError,
    BatchRetryTopicError,
    MessageNotFoundError,
    OffsetOutOfRangeError,
    StoreError,
    TopicForbiddenError,
)
from tidemark.format.properties import decode_properties
from tidemark.store.originals.topics import TopicConfig
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1.commit_log_pb2 import SendBackRequest

DEFAULT_LIMIT = 16
BODY = b"failed"


class LogOfOne:
    """A log that holds one committed record, and its reader."""

    def __init__(self, record: bytes) -> None:
        self.record = record
        self.min_offset = 0
        self.segment_size = 1 << 16
        self.committed = Committed(len(record))

    async def read(self, physical_offset: int, end: int) -> bytes:
        return self.record[physical_offset:end]


def copied(root: Path, *, tried: int = 0, batch: bool = False, **fields: Any) -> Copy:
    """Return the copy for group billing of a message of topic orders with *tried* tries."""
    log = LogOfOne(
        record_bytes(topic=b"orders", body=BODY, properties=properties({"UNIQ_KEY": "original"}), reconsume_times=tried)
    )
    topics = TopicTable(StorePaths(root), DiskStorage(), auto_create=True, default_queues=4)
    back = SendBack(cast(CommitLog, log), topics, cast(LogReader, log), STORE_HOST, DEFAULT_LIMIT)
    given = {"group": "billing", "topic": "orders", "physical_offset": 0, **fields}
    copy = asyncio.run(back.copy_of(SendBackRequest(**given)))
    config = TopicConfig(copy.topic, 1, 1, attributes={"queue.type": "BatchCQ"} if batch else {})
    stored = back.batch_of(copy, topic_of(config), lambda _: None)
    assert stored.readers_topic == copy.topic
    return copy


def properties_of(copy: Copy) -> Mapping[str, str]:
    return decode_properties(copy.element.properties)


def test_the_first_retry_is_delayed_ten_seconds_in_the_retry_topic(tmp_path: Path) -> None:
    """RocketMQ: delay level 3 and the number of tries so far; the copy names the original's topic and id."""
    copy = copied(tmp_path)
    assert (copy.topic, copy.delay_level, copy.is_dead_letter) == ("%RETRY%billing", 3, False)
    assert (copy.element.body, copy.wrapper.reconsume_times, copy.wrapper.born_timestamp) == (BODY, 1, BORN_MS)
    named = properties_of(copy)
    assert (named["RETRY_TOPIC"], named["ORIGIN_MESSAGE_ID"]) == ("orders", "original")


@pytest.mark.parametrize(("tried", "given", "level"), [(4, 0, 7), (14, 5, 5), (15, 0, 18)])
def test_the_delay_grows_with_the_attempts_unless_the_request_sets_one(
    tmp_path: Path, tried: int, given: int, level: int
) -> None:
    assert copied(tmp_path, tried=tried, delay_level=given).delay_level == level


@pytest.mark.parametrize(
    ("tried", "fields"),
    [(DEFAULT_LIMIT, {}), (2, {"max_reconsume_times": 2}), (0, {"delay_level": -1})],
    ids=["the default limit", "the request's limit", "a negative level"],
)
def test_a_message_without_attempts_left_becomes_a_dead_letter(
    tmp_path: Path, tried: int, fields: dict[str, Any]
) -> None:
    copy = copied(tmp_path, tried=tried, **fields)
    assert (copy.topic, copy.delay_level, copy.is_dead_letter) == ("%DLQ%billing", 0, True)
    named = properties_of(copy)
    assert (named["DLQ_ORIGIN_TOPIC"], named["DLQ_ORIGIN_MESSAGE_ID"]) == ("orders", "original")


def test_the_key_of_a_retry_depends_on_group_and_attempt_only(tmp_path: Path) -> None:
    keys = [
        copied(tmp_path / str(number), tried=tried, group=group).unique_key
        for number, (group, tried) in enumerate([("billing", 0), ("billing", 0), ("billing", 1), ("mail", 0)])
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


REFUSED: dict[str, tuple[type[StoreError], dict[str, Any]]] = {
    "an empty group": (ArgumentIllegalError, {"group": ""}),
    "a topic that no group reads": (TopicForbiddenError, {"topic": "SCHEDULE_TOPIC_XXXX"}),
    "a level above 18": (ArgumentIllegalError, {"delay_level": 19}),
    "a place behind the committed end": (OffsetOutOfRangeError, {"physical_offset": 1 << 20}),
    "a negative place": (ArgumentIllegalError, {"physical_offset": -1}),
    "a place inside the record": (MessageNotFoundError, {"physical_offset": 3}),
    "another topic": (ArgumentIllegalError, {"topic": "payments"}),
    "an index in a single message": (ArgumentIllegalError, {"inner_index": 0}),
    "a retry topic of batches": (BatchRetryTopicError, {"batch": True}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_requests_are_refused(tmp_path: Path, case: str) -> None:
    error, fields = REFUSED[case]
    with pytest.raises(error):
        copied(tmp_path, **fields)
