"""Member: what one member of a group has, and its rules as a replica and as a candidate."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.errors import PieceIllegalError, ReplicaDivergedError, StaleEpochError
from tidemark.replication.epochs import Epoch, Epochs, consistent_point, cut_epochs
from tidemark.replication.group_state import GroupState
from tidemark.replication.in_sync_set import InSyncSet


class Member:
    """The log of one member, as its ends and epochs. Not thread-safe.

    The caller has the bytes. It makes `promised` and `epochs` durable before it acts on what a method returns.

    identity  random name of the member's directory: a copy of the directory needs another one
    end       physical offset of the log's end
    synced    physical offset below which the log survives a power cut
    confirm   physical offset below which every byte is committed, as far as this member knows; it is never cut
    promised  greatest epoch that the member has seen: it follows no older writer
    epochs    of the log's bytes
    """

    def __init__(
        self, identity: str, *, end: int = 0, confirm: int = 0, promised: int = 0, epochs: Epochs = ()
    ) -> None:
        self.identity = identity
        self.end = self.synced = end
        self.confirm = confirm
        self.promised = promised
        self.epochs = cut_epochs(epochs, end + 1)
        self._epochs_to_come: Sequence[Epoch] = ()  # of the writer that is followed

    # -- as a replica -----------------------------------------------------------------------------------------------

    def follow(self, epoch: int, epochs: Sequence[Epoch], end: int) -> int:
        """Promise *epoch* of a writer whose log has these *epochs* and this *end*, and cut what only this log has.

        Returns:
            physical offset at which the copy of the writer's log begins: the new end of this log.

        Raises:
            StaleEpochError: the writer's epoch is older than the promised one.
            ReplicaDivergedError: the logs part below the confirm offset, so that nothing is cut.
        """
        if epoch < self.promised:
            raise StaleEpochError(
                f"the writer's epoch is {epoch}, and this member has promised {self.promised}",
                epoch=epoch,
                newer_epoch=self.promised,
            )
        point = consistent_point(self.epochs, self.end, epochs, end)
        if point < self.confirm:
            raise ReplicaDivergedError(
                f"the log parts from the writer's at {point}, below the confirm offset {self.confirm}; nothing is cut",
                point=point,
                confirm_offset=self.confirm,
                epoch=epoch,
            )
        self.promised = epoch
        self._cut(point)
        self._epochs_to_come = epochs
        return point

    def _cut(self, end: int) -> None:
        self.end, self.synced = end, min(self.synced, end)
        self.epochs = cut_epochs(self.epochs, end)

    def begin_at(self, offset: int) -> None:
        """Begin this empty log at *offset*: the writer it follows has no earlier bytes. They were all committed."""
        assert self.end <= offset, self.end
        self.end = self.synced = self.confirm = offset
        self.epochs = cut_epochs(self._epochs_to_come, offset)

    def append(self, begin: int, end: int) -> None:
        """Add the writer's bytes [begin, end).

        Raises:
            PieceIllegalError: they do not begin at the log's end.
        """
        if begin != self.end or end < begin:
            raise PieceIllegalError(
                f"the piece has the bytes from {begin} to {end}, and the log ends at {self.end}",
                begin=begin,
                end=end,
                log_end=self.end,
            )
        self.end = end
        self.epochs = cut_epochs(self._epochs_to_come, end)

    def take_back(self, begin: int) -> None:
        """Forget the bytes from *begin* on that `append` added, because they could not be written."""
        self._cut(begin)

    def sync(self, end: int) -> int:
        """Note that the log is synced below *end*; return the end to acknowledge."""
        self.synced = max(self.synced, min(end, self.end))
        return self.synced

    def commit(self, committed: int) -> int:
        """Note the writer's committed end; return this member's confirm offset, which is at most its synced end."""
        self.confirm = max(self.confirm, min(committed, self.synced))
        return self.confirm

    # -- as a candidate and writer ------------------------------------------------------------------------------------

    def candidacy(self, state: GroupState) -> GroupState | None:
        """Return the state to propose with this member as the writer; None if it may lack committed bytes."""
        return state.elected(self.identity) if state.can_elect(self.identity) else None

    def is_elected(self, state: GroupState) -> bool:
        """Return True if *state*, which the group store has taken from this member, makes it the writer."""
        return state.writer == self.identity and state.epoch > self.promised

    def promote(self, state: GroupState) -> InSyncSet:
        """Begin the epoch in which this member is the writer. The whole log must be synced; nothing of it is cut."""
        assert self.is_elected(state), (state, self.identity, self.promised)
        self.promised = state.epoch
        self.synced = self.end
        self.epochs = (*self.epochs, Epoch(state.epoch, self.end))
        return InSyncSet(state, self.identity, committed=self.confirm)

    def grow(self, end: int) -> None:
        """Note the log's end after appends of this member as the writer."""
        self.end = end

    @property
    def epoch_start(self) -> int:
        """Physical offset at which the newest epoch began; 0 without one."""
        return self.epochs[-1].start if self.epochs else 0
