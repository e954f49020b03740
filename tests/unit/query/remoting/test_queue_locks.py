from __future__ import annotations

import pytest

from services.indexer.query.remoting.queue_locks import LOCK_S, QueueLocks

QUEUES = [("orders", 0), ("orders", 1)]


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def locks(clock: Clock) -> QueueLocks:
    return QueueLocks(clock)


def test_free_queues_are_locked_and_those_of_another_client_are_not(locks: QueueLocks) -> None:
    assert locks.lock("g", "c1", QUEUES[:1]) == {QUEUES[0]}
    assert locks.lock("g", "c2", QUEUES) == {QUEUES[1]}


def test_groups_do_not_share_locks(locks: QueueLocks) -> None:
    locks.lock("g", "c1", QUEUES)
    assert locks.lock("h", "c2", QUEUES) == set(QUEUES)


def test_a_lock_expires_after_a_minute_unless_its_client_asks_again(locks: QueueLocks, clock: Clock) -> None:
    locks.lock("g", "c1", QUEUES)
    clock.now_s += LOCK_S - 1
    assert locks.lock("g", "c1", QUEUES[:1]) == {QUEUES[0]}
    clock.now_s += 1
    assert locks.lock("g", "c2", QUEUES) == {QUEUES[1]}


def test_only_the_client_that_has_a_lock_can_release_it(locks: QueueLocks) -> None:
    locks.lock("g", "c1", QUEUES)
    locks.unlock("g", "c2", QUEUES)
    assert locks.lock("g", "c3", QUEUES) == set()
    locks.unlock("g", "c1", QUEUES[:1])
    assert locks.lock("g", "c3", QUEUES) == {QUEUES[0]}


def test_releasing_in_an_unknown_group_does_nothing(locks: QueueLocks) -> None:
    locks.unlock("nobody", "c1", QUEUES)
    locks.free("c1", "nobody")


def test_a_client_that_leaves_a_group_keeps_its_locks_in_other_groups(locks: QueueLocks) -> None:
    for group in ("g", "h"):
        locks.lock(group, "c1", QUEUES)
    locks.free("c1", "g")
    assert locks.lock("g", "c2", QUEUES) == set(QUEUES)
    assert locks.lock("h", "c2", QUEUES) == set()


def test_a_client_that_is_gone_loses_its_locks_in_all_groups_and_others_keep_theirs(locks: QueueLocks) -> None:
    for group in ("g", "h"):
        locks.lock(group, "c1", QUEUES[:1])
        locks.lock(group, "c2", QUEUES[1:])
    locks.free("c1")
    for group in ("g", "h"):
        assert locks.lock(group, "c3", QUEUES) == {QUEUES[0]}


def test_expired_locks_are_forgotten(locks: QueueLocks, clock: Clock) -> None:
    """The table does not grow with clients that never come back."""
    locks.lock("g", "c1", QUEUES)
    clock.now_s += LOCK_S - 1
    locks.lock("h", "c1", QUEUES)
    clock.now_s += 1
    locks.expire()
    assert set(locks._groups) == {"h"}
