"""The rules of replication under random schedules, and thirteen broken rules, each of which such schedules find."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.unit.replication.world import Rules, ViolationError, World, epochs_are_of_bytes
from tidemark.replication.epochs import Epoch
from tidemark.replication.group_state import GroupState
from tidemark.replication.in_sync_set import InSyncSet
from tidemark.replication.member import Member

STEPS = 3_000
SIZES = [(3, 2), (2, 2), (2, 1), (3, 1), (3, 3), (5, 3), (4, 2)]  # members, min_in_sync
SEEDS = int(os.environ.get("REPLICATION_SEEDS") or 12)  # schedules of each size
MOST_SEEDS = 600  # until a broken rule must be found


def run(seed: int, rules: Rules, *, members: int = 3, min_in_sync: int = 2, steps: int = STEPS) -> World:
    world = World(seed, members=members, min_in_sync=min_in_sync, rules=rules)
    world.run(steps)
    return world


@pytest.mark.parametrize(("members", "min_in_sync"), SIZES)
def test_no_schedule_breaks_a_promise(members: int, min_in_sync: int) -> None:
    worlds = [run(seed, Rules(), members=members, min_in_sync=min_in_sync) for seed in range(SEEDS)]
    for name in ("acknowledged", "elections", "crashes", "changes"):
        assert sum(getattr(world, name) for world in worlds) > SEEDS, name
    assert any(world.cuts for world in worlds)
    for world in worlds:
        for node in world.nodes.values():
            assert epochs_are_of_bytes(node.member.epochs, node.log)


class AcknowledgesBeforeSync(Member):
    def sync(self, end: int) -> int:
        super().sync(end if hash((end, self.promised)) % 2 else 0)
        return self.end


class ConfirmsUnsynced(Member):
    def commit(self, committed: int) -> int:
        self.confirm = max(self.confirm, min(committed, self.end))
        return self.confirm


class FollowsOlder(Member):
    def follow(self, epoch: int, epochs: Sequence[Epoch], end: int) -> int:
        promised, self.promised, self.confirm = self.promised, 0, 0
        point = super().follow(epoch, epochs, end)
        self.promised = max(promised, epoch)
        return point


class CutsToConfirm(Member):
    def follow(self, epoch: int, epochs: Sequence[Epoch], end: int) -> int:
        self._cut(min(self.confirm, end))
        return super().follow(epoch, epochs, end) if not self.end else self._follow_from(epoch, epochs)

    def _follow_from(self, epoch: int, epochs: Sequence[Epoch]) -> int:
        self.promised, self._epochs_to_come = max(self.promised, epoch), epochs
        return self.end


class KeepsTail(CutsToConfirm):
    def follow(self, epoch: int, epochs: Sequence[Epoch], end: int) -> int:
        self._cut(min(self.end, end))
        return self._follow_from(epoch, epochs)


class ContinuesInItsEpoch(Member):
    def is_elected(self, state: GroupState) -> bool:
        return state.writer == self.identity and state.epoch >= self.promised


class ElectsAnyone(GroupState):
    def can_elect(self, member: str) -> bool:
        return True


class ShrinksEarly(InSyncSet):
    @property
    def waited_for(self) -> frozenset[str]:
        return self.known.in_sync if self.pending is None else self.pending.in_sync


class ExpandsLate(InSyncSet):
    @property
    def waited_for(self) -> frozenset[str]:
        return self.known.in_sync


class CountsUnconfirmed(InSyncSet):
    @property
    def has_enough(self) -> bool:
        return len(self.waited_for) >= self.known.min_in_sync


class TakesAReadForARefusal(InSyncSet):
    def learn(self, state: GroupState) -> None:
        if state.revision == self.known.revision:
            self.pending = None
        super().learn(state)


class BelievesOldAnswers(InSyncSet):
    def learn(self, state: GroupState) -> None:
        super().learn(state)
        self.known, self.pending = state, None


BROKEN = {
    "acknowledged before it is synced": Rules(member=AcknowledgesBeforeSync),
    "a member is not waited for before it has left": Rules(in_sync_set=ShrinksEarly),
    "a member is waited for only once its joining is confirmed": Rules(in_sync_set=ExpandsLate),
    "min_in_sync counts a member whose joining is not confirmed": Rules(in_sync_set=CountsUnconfirmed),
    "a replica cuts to its confirm offset": Rules(member=CutsToConfirm),
    "a replica keeps its own tail": Rules(member=KeepsTail),
    "a replica follows a writer of an older epoch": Rules(member=FollowsOlder),
    "a restarted writer continues in its epoch": Rules(member=ContinuesInItsEpoch, keeps_epoch=True),
    "any member may be elected": Rules(state=ElectsAnyone, may_diverge=True),
    "a wiped disk keeps its identity": Rules(wiped_keeps_identity=True, may_diverge=True),
    "the confirm offset is above the synced end": Rules(member=ConfirmsUnsynced),
    "a read of the old state means that a change was refused": Rules(in_sync_set=TakesAReadForARefusal),
    "an old answer of the group store is believed": Rules(in_sync_set=BelievesOldAnswers),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_found(name: str) -> None:
    for seed in range(MOST_SEEDS):
        try:
            run(seed, BROKEN[name])
        except (ViolationError, AssertionError):
            return
    pytest.fail(f"{MOST_SEEDS} schedules do not find it")


def test_the_schedules_are_those_of_their_seed() -> None:
    first, second = run(1, Rules()), run(1, Rules())
    assert (first.truth, first.state) == (second.truth, second.state)
    assert replace(first.state, revision=0) != replace(run(2, Rules()).state, revision=0)
