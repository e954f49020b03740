"""RocketMQ's queue/ConsumeQueueStoreTest: a queue folder and topics.json must agree on the queue's type."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import write_log
from tests.pipeline_runs import build, plan_of, queue_files
from tidemark.errors import CorruptStoreError
from tidemark.store.originals.topics import TopicConfig, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance


def write_as(root: Path, queue_type: str) -> None:
    """Write topics.json with queues of this type."""
    topic = TopicConfig("TopicTest", 1, 1, attributes={"queue.type": queue_type})
    save_topics(StorePaths(root).topics, {"TopicTest": topic}, DiskStorage(), counter=1)


def index(root: Path) -> None:
    build(plan_of(root, index_slots=16, index_entries=64))


@pytest.mark.parametrize(
    ("written", "configured"), [("SimpleCQ", "BatchCQ"), ("BatchCQ", "SimpleCQ")], ids=["was simple", "was batch"]
)
def test_cqs1_cqs2_a_topic_whose_type_was_changed_is_refused(tmp_path: Path, written: str, configured: str) -> None:
    """The queues are of type *written*, topics.json has another: the error is RocketMQ's text, and no byte changes."""
    write_log(tmp_path / "commitlog", 8192, ({"queue_offset": i} for i in range(5)))
    write_as(tmp_path, written)
    index(tmp_path)
    before = queue_files(tmp_path)
    write_as(tmp_path, configured)
    write_log(tmp_path / "commitlog", 8192, ({"queue_offset": i} for i in range(9)))
    with pytest.raises(CorruptStoreError, match=f"should be {written}, but is {configured}"):
        index(tmp_path)
    assert queue_files(tmp_path) == before
