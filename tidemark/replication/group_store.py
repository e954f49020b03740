"""GroupStore: where a group keeps its state; and the manual one, in which an operator decides who writes.

With the manual store each member has the newest state that it has heard of, in a file. The writer alone changes it.
Another member becomes the writer by an operator's order, who must have stopped the old writer. Epoch numbers stay
unique even if that was forgotten: a promotion takes the next multiple of `EPOCHS_OF_A_WRITER`, and each further start
of that writer the next number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tidemark.errors import StoreContradictionError
from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState

EPOCHS_OF_A_WRITER = 1 << 16


class GroupStore(Protocol):
    """Compare-and-swap on the state of one group. It may be another machine's: call it in a thread."""

    def read(self) -> GroupState | None:
        """Return the state; None before the first election."""

    def propose(self, state: GroupState) -> GroupState:
        """Store *state* if the present state has its revision, with the next revision. Return the present state."""


class ManualGroupStore:
    """The state in a member's own file. One thread at a time proposes."""

    def __init__(self, known: KnownState) -> None:
        self._known = known

    def read(self) -> GroupState | None:
        """Return the newest state that this member has heard of."""
        return self._known.read()

    def propose(self, state: GroupState) -> GroupState:
        """Store *state* unless this member has heard of another one since; return the newest. Raises OSError."""
        known = self._known.read()
        if known is not None and known.revision != state.revision:
            return known
        return self._known.adopt(replace(state, revision=state.revision + 1))


def promoted_epoch(epoch: int) -> int:
    """Return the epoch of a writer that an operator promotes when the group is in *epoch*."""
    return (epoch // EPOCHS_OF_A_WRITER + 1) * EPOCHS_OF_A_WRITER


def restarted_epoch(epoch: int) -> int:
    """Return the epoch of the writer of *epoch* after its restart.

    Raises:
        StoreContradictionError: the writer has no number left.
    """
    if (epoch + 1) % EPOCHS_OF_A_WRITER == 0:
        raise StoreContradictionError(
            f"the writer has started {EPOCHS_OF_A_WRITER - 1:,} times since its promotion: promote it again",
            setting="TIDEMARK_REPLICATION",
        )
    return epoch + 1
