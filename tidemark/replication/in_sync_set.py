"""InSyncSet: whom a writer waits for, and the committed end that follows from their acknowledgements."""

from __future__ import annotations

from tidemark.errors import StaleEpochError
from tidemark.replication.group_state import GroupState


class InSyncSet:
    """The members in sync, as the writer *writer* of one epoch knows them. Not thread-safe.

    A change of the set counts as made and as not made until the group store shows which: the writer waits for the
    members of both sets. An answer of the store that is not newer than `known` proves nothing, because a request may
    still be under way; therefore `pending` is proposed again, unchanged, until a greater revision is seen.

    known      the newest state that the group store has shown
    pending    a proposed state whose outcome is not known; None if there is none
    committed  physical offset below which every byte is committed; at first the writer's own confirm offset
    """

    def __init__(self, known: GroupState, writer: str, *, committed: int) -> None:
        self.known = known
        self.pending: GroupState | None = None
        self.committed = committed
        self._writer = writer
        self._synced: dict[str, int] = {}

    @property
    def has_enough(self) -> bool:
        """True if appends may be accepted. Members whose joining is not confirmed do not count."""
        return self.known.has_enough

    @property
    def waited_for(self) -> frozenset[str]:
        """The members that must have synced a byte before it is committed."""
        return self.known.in_sync if self.pending is None else self.known.in_sync | self.pending.in_sync

    def acknowledge(self, member: str, end: int) -> None:
        """Note that *member* has synced everything below *end*, in this epoch."""
        self._synced[member] = max(end, self._synced.get(member, 0))

    def synced_end(self, member: str) -> int:
        """Return the physical offset below which *member* has synced everything; 0 if it has not acknowledged."""
        return self._synced.get(member, 0)

    def commit(self) -> int:
        """Return the committed end after all acknowledgements so far."""
        if self.has_enough:
            self.committed = max(self.committed, min(map(self.synced_end, self.waited_for)))
        return self.committed

    # -- changes of the set -----------------------------------------------------------------------------------------

    def may_join(self, member: str, *, epoch_start: int) -> bool:
        """Return True if *member* has everything that it needs to be in sync."""
        is_other = member not in self.known.in_sync
        return is_other and self.synced_end(member) >= max(self.committed, epoch_start)

    def add(self, member: str) -> GroupState | None:
        """Return the state to propose, with *member*; None if another change is pending."""
        return self._propose(self.known.joined_by(member))

    def remove(self, member: str) -> GroupState | None:
        """Return the state to propose, without *member*; None if another change is pending, or there is no change."""
        if member == self._writer or member not in self.known.in_sync:
            return None
        return self._propose(self.known.left_by(member))

    def _propose(self, state: GroupState) -> GroupState | None:
        if self.pending is not None:
            return None
        self.pending = state
        return state

    def learn(self, state: GroupState) -> None:
        """Note a state that the group store has shown, which may be old.

        Raises:
            StaleEpochError: another epoch has begun, so this writer must stop.
        """
        if state.epoch > self.known.epoch:
            raise StaleEpochError(
                f"epoch {state.epoch} has begun, so the writer of epoch {self.known.epoch} stops",
                epoch=self.known.epoch,
                newer_epoch=state.epoch,
            )
        if state.revision > self.known.revision:
            self.known, self.pending = state, None
