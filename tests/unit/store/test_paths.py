"""Locations of a store's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.format.topic_name import is_topic_name
from tidemark.store.paths import StorePaths

PATHS = StorePaths(Path("root"))


def test_paths_follow_rocketmq_and_tidemark_files_have_their_own_folder() -> None:
    """They follow docs/format.md §1; no file of Tidemark's is in a folder of RocketMQ's."""
    theirs = (PATHS.commit_log, PATHS.consume_queue, PATHS.batch_consume_queue, PATHS.index)
    assert [str(path) for path in theirs] == [
        f"root/{name}" for name in ("commitlog", "consumequeue", "batchconsumequeue", "index")
    ]
    small = (PATHS.checkpoint, PATHS.abort, PATHS.lock, PATHS.topics, PATHS.consumer_offsets)
    assert [str(path) for path in small] == [
        f"root/{name}" for name in ("checkpoint", "abort", "lock", "config/topics.json", "config/consumerOffset.json")
    ]
    ours = (PATHS.writer, PATHS.indexer, PATHS.query, PATHS.terms, PATHS.marks)
    assert all(path.parts[:2] == ("root", "tidemark") for path in ours)


def test_a_queue_folder_is_topic_and_id_unescaped() -> None:
    """Names are plain, ids decimal."""
    assert PATHS.queue("%RETRY%g", 3, batch=False) == Path("root/consumequeue/%RETRY%g/3")
    assert PATHS.queue("T", 0, batch=True) == Path("root/batchconsumequeue/T/0")


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../x", "a.b", "a\0", "a b", "t\n", "ü", "x" * 256])
def test_a_topic_name_that_cannot_be_a_folder_is_refused(topic: str) -> None:
    """A topic's name cannot lead out of the store's root."""
    assert not is_topic_name(topic)
    with pytest.raises(ValueError, match="no folder"):
        PATHS.queue(topic, 0, batch=False)


def test_a_negative_queue_id_is_refused() -> None:
    """Queue ids count from 0."""
    with pytest.raises(ValueError, match="no folder"):
        PATHS.queue("T", -1, batch=False)
