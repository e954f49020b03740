"""GroupState: what the group store keeps of a replication group, changed by compare-and-swap only."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class GroupState:
    """State of a group at one revision. Members are named by their identities.

    A changed state keeps the revision from which it was made: the group store takes it only if that is still its own,
    and numbers it then.

    epoch        number of the life of one writer; each election takes the next
    writer       None before the first election
    in_sync      members that have synced every committed byte, and without which nothing is committed
    eligible     members that left `in_sync` when fewer than min_in_sync were to remain. Nothing was committed since, so
                 that they have every committed byte, too
    min_in_sync  least size of `in_sync` with which bytes are committed
    group        random name of the group, which its first writer makes: members of two groups never copy each other
    """

    revision: int
    epoch: int
    writer: str | None
    in_sync: frozenset[str]
    eligible: frozenset[str]
    min_in_sync: int
    group: str = ""

    @property
    def has_enough(self) -> bool:
        """True if bytes can be committed."""
        return len(self.in_sync) >= self.min_in_sync

    def can_elect(self, member: str) -> bool:
        """Return True if *member* has every committed byte, so that it may become the writer."""
        return member in self.in_sync or member in self.eligible

    def elected(self, member: str, *, epoch: int | None = None) -> GroupState:
        """Return the state with *member* as the writer of *epoch* (default: the next one), and alone in sync."""
        number = self.epoch + 1 if epoch is None else epoch
        assert number > self.epoch, (number, self.epoch)
        in_sync = frozenset({member})
        rest = (self.in_sync | self.eligible) - in_sync
        return replace(self, epoch=number, writer=member, in_sync=in_sync, eligible=self._eligible(in_sync, rest))

    def left_by(self, member: str) -> GroupState:
        """Return the state without *member* in sync."""
        in_sync = self.in_sync - {member}
        return replace(self, in_sync=in_sync, eligible=self._eligible(in_sync, self.eligible | {member}))

    def joined_by(self, member: str) -> GroupState:
        """Return the state with *member* in sync."""
        in_sync = self.in_sync | {member}
        return replace(self, in_sync=in_sync, eligible=self._eligible(in_sync, self.eligible - in_sync))

    @property
    def age(self) -> tuple[int, int]:
        """Order of the states of one group: a later state has a greater one."""
        return self.epoch, self.revision

    def _eligible(self, in_sync: frozenset[str], others: frozenset[str]) -> frozenset[str]:
        return others if len(in_sync) < self.min_in_sync else frozenset()
