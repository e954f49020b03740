"""OffsetCommitter: a deleted topic among others, and commits that are refused or wait for the service."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import Mock

import pytest

from tidemark.client.consumer.offset_committer import OffsetCommitter
from tidemark.client.consumer.queue_assignment import QueueAssignment
from tidemark.client.consumer.queue_cursor import Cursor
from tidemark.client.received_message import TopicQueue
from tidemark.errors import ArgumentIllegalError, GenerationStaleError, QueryUnreachableError, TopicNotFoundError

KEPT, GONE = TopicQueue("kept", 0), TopicQueue("gone", 0)


class Record:
    """The group's offsets at a service that has no topic `gone`."""

    def __init__(self) -> None:
        self.offsets: dict[TopicQueue, int] = {}
        self.assigned = Mock(spec=QueueAssignment)
        self.assigned.commit.side_effect = self._commit

    def _commit(self, offsets: Mapping[TopicQueue, int]) -> None:
        if GONE in offsets:
            raise TopicNotFoundError("no such topic", topic="gone")
        self.offsets.update(offsets)

    def committer(self, *, is_automatic: bool = True) -> OffsetCommitter:
        return OffsetCommitter(self.assigned, interval_s=0.0, is_automatic=is_automatic, first_unfinished=dict)


def cursors() -> dict[TopicQueue, Cursor]:
    return {queue: Cursor(queue, 7) for queue in (GONE, KEPT)}


def test_positions_of_a_deleted_topic_do_not_prevent_other_commits() -> None:
    for is_automatic in (False, True):
        record = Record()
        committer = record.committer(is_automatic=is_automatic)
        if is_automatic:
            committer.commit_if_possible(cursors())
        else:
            committer.commit(cursors())
        assert record.offsets == {KEPT: 7}


def test_explicit_offsets_of_a_deleted_topic_are_refused() -> None:
    with pytest.raises(TopicNotFoundError):
        Record().committer().commit(cursors(), {GONE: 3})


def test_a_block_commits_automatically_even_with_auto_commit_off() -> None:
    record = Record()
    committer = record.committer(is_automatic=False)
    committer.commit_if_possible({KEPT: Cursor(KEPT, 7)})
    assert record.offsets == {}
    with committer.always_automatic():
        committer.commit_if_possible({KEPT: Cursor(KEPT, 7)})
    assert (record.offsets, committer.is_automatic) == ({KEPT: 7}, False)


@pytest.mark.parametrize("error", [QueryUnreachableError("away"), GenerationStaleError("join again")])
def test_a_decided_offset_is_kept_until_its_commit_succeeds(error: Exception) -> None:
    record = Record()
    committer, decided = record.committer(), {KEPT: 3}
    record.assigned.commit.side_effect = error
    committer.record({KEPT: Cursor(KEPT, 3)}, decided)
    assert decided == {KEPT: 3}
    record.assigned.commit.side_effect = record._commit
    committer.record({KEPT: Cursor(KEPT, 9)}, decided)
    assert (record.offsets, decided) == ({KEPT: 3}, {})


def test_a_refused_decided_offset_is_logged_and_the_others_are_committed(caplog: pytest.LogCaptureFixture) -> None:
    record, other = Record(), TopicQueue("kept", 1)

    def refuse(offsets: Mapping[TopicQueue, int]) -> None:
        if other in offsets:
            raise ArgumentIllegalError("above the queue's end")
        record.offsets.update(offsets)

    record.assigned.commit.side_effect = refuse
    decided = {KEPT: 3, other: 99}
    record.committer().record({queue: Cursor(queue, 0) for queue in decided}, decided)
    assert (record.offsets, decided) == ({KEPT: 3}, {})
    assert "above the queue's end" in caplog.text
