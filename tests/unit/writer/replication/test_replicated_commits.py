from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from services.writer.log.flusher import WrittenGroup
from services.writer.replication.replicated_commits import ReplicatedCommits
from tidemark.errors import StaleEpochError
from tidemark.replication.group_state import GroupState
from tidemark.replication.in_sync_set import InSyncSet

STATE = GroupState(7, 3, "a", frozenset("ab"), frozenset(), 2)


class Commits:
    """The commits of writer a, as (committed end, ends of the groups)."""

    def __init__(self, state: GroupState = STATE) -> None:
        self.seen: list[tuple[int, list[int]]] = []
        self.log = ReplicatedCommits(InSyncSet(state, "a", committed=0), "a", self._commit)

    def _commit(self, end: int, groups: list[WrittenGroup]) -> None:
        self.seen.append((end, [group.end for group in groups]))

    def flush(self, *ends: int) -> None:
        for end in ends:
            self.log.flushed(WrittenGroup([], end, [], 0))


def test_a_group_is_committed_once_the_others_have_it() -> None:
    commits = Commits()
    commits.flush(100, 200, 300)
    assert commits.seen == []
    commits.log.acknowledged("b", 200)
    commits.log.acknowledged("b", 300)
    assert commits.seen == [(200, [100, 200]), (300, [300])]


def test_a_group_is_committed_at_its_flush_if_the_others_are_ahead() -> None:
    """A replica may sync faster than the writer's own disk."""
    commits = Commits()
    commits.log.acknowledged("b", 300)
    assert commits.seen == []
    commits.flush(100)
    assert commits.seen == [(100, [100])]


def test_the_committed_end_may_be_within_a_group() -> None:
    """A replica acknowledges the batches of a group one after the other."""
    commits = Commits()
    commits.flush(300)
    commits.log.acknowledged("b", 120)
    assert (commits.seen, commits.log.committed) == ([(120, [])], 120)
    commits.log.acknowledged("b", 300)
    assert commits.seen == [(120, []), (300, [300])]


def test_a_member_that_is_not_in_sync_does_not_count() -> None:
    commits = Commits()
    commits.flush(100)
    commits.log.acknowledged("c", 100)
    assert commits.seen == []


def test_groups_that_wait_are_committed_when_the_slow_member_has_left() -> None:
    """With min_in_sync 1, by the writer alone."""
    commits = Commits(replace(STATE, min_in_sync=1))
    commits.flush(100, 200)
    commits.log.learn(replace(STATE.left_by("b"), min_in_sync=1, revision=8))
    assert commits.seen == [(200, [100, 200])]


def test_groups_wait_while_too_few_are_in_sync() -> None:
    commits = Commits()
    commits.log.learn(replace(STATE.left_by("b"), revision=8))
    assert not commits.log.has_enough
    commits.flush(100)
    assert commits.seen == []
    commits.log.acknowledged("b", 100)
    commits.log.learn(replace(STATE, revision=9))
    assert commits.seen == [(100, [100])]


def test_a_later_epoch_commits_nothing() -> None:
    commits = Commits()
    commits.flush(100)
    with pytest.raises(StaleEpochError):
        commits.log.learn(replace(STATE, epoch=4, revision=8, in_sync=frozenset("a"), min_in_sync=1))
    assert commits.seen == []


def test_commits_of_several_threads_keep_the_order_of_the_log() -> None:
    commits = Commits()
    ends = range(1, 2_000)

    def acknowledge() -> None:
        for end in ends:
            commits.log.acknowledged("b", end)

    acknowledging = threading.Thread(target=acknowledge)
    acknowledging.start()
    commits.flush(*ends)
    acknowledging.join()
    groups = [end for _, some in commits.seen for end in some]
    assert groups == list(ends)
    assert [end for end, _ in commits.seen] == sorted({end for end, _ in commits.seen})
