"""What RocketMQ's clients ask of SendBack: the copy keeps its UNIQ_KEY and names the offset message id."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from services.writer.log.commit_log import CommitLog
from services.writer.rpc.committed_bytes import LogReader
from services.writer.rpc.send_back import SendBack
from services.writer.topics.topic_table import TopicTable, topic_of
from tests.builders import STORE_HOST, properties, record_bytes
from tidemark.format.properties import decode_properties
from tidemark.store.originals.topics import TopicConfig
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1.commit_log_pb2 import SendBackRequest

from .test_send_back import LogOfOne


@pytest.mark.parametrize("tried", [0, 16], ids=["retry", "dead letter"])
@pytest.mark.parametrize(
    ("given", "has_its_own"), [({"UNIQ_KEY": "original"}, True), ({}, False)], ids=["a key", "no key"]
)
def test_a_kept_unique_key_is_the_originals(
    tmp_path: Path, tried: int, given: dict[str, str], has_its_own: bool
) -> None:
    """Without a key in the original, the copy has a derived one. A kept key may be another topic's, too."""
    log = LogOfOne(record_bytes(topic=b"orders", body=b"x", properties=properties(given), reconsume_times=tried))
    topics = TopicTable(StorePaths(tmp_path), DiskStorage(), auto_create=True, default_queues=4)
    back = SendBack(cast(CommitLog, log), topics, cast(LogReader, log), STORE_HOST, 16)
    request = SendBackRequest(group="g", topic="orders", keep_unique_key=True, origin_message_id="AC10")
    copy = asyncio.run(back.copy_of(request))
    found = decode_properties(copy.element.properties)
    assert found["ORIGIN_MESSAGE_ID"] == "AC10"
    assert found["UNIQ_KEY"] == copy.unique_key
    assert (copy.unique_key == "original") is has_its_own
    assert back.batch_of(copy, topic_of(TopicConfig(copy.topic, 1, 1)), lambda _: None).may_share_key is has_its_own
