"""CommittedOffset: reads the committed offset from the writer's mapped checkpoint."""

from __future__ import annotations

from tidemark.errors import CorruptStoreError
from tidemark.store import wake
from tidemark.store.checkpoint import Checkpoint
from tidemark.store.originals.terms import NO_TERM, Term, TermsFile

from .plan import EpochPlan

_NO_CHECKPOINT_WAIT_S = 0.05


class CommittedOffset:
    """The committed offset of the current term, with a wait for its next change.

    The mapped value is valid only if the machine has not restarted since the term began: the mapping then holds the
    value that the writer stored.
    """

    def __init__(self, plan: EpochPlan) -> None:
        self._limit = plan.limit
        self._path = plan.paths.checkpoint
        self._terms = TermsFile(plan.paths.terms)
        self._term = NO_TERM  # at the last look
        self._checkpoint: Checkpoint | None = None
        self._address: int | None = None

    def term(self) -> Term:
        """Return the writer's current term, or its last one while no writer runs: readers clamp marks to it anyway."""
        self._term = self._terms.current()
        return self._term

    def clamp(self, physical_offset: int, *, of_term: int) -> int:
        """Lower an offset of term *of_term* to the least recovered end of the terms since."""
        return self._terms.clamp(physical_offset, of_term=of_term)

    def read(self) -> int:
        """Return the exclusive end of the log that may be built; 0 while it is unknown.

        Until the machine restarts, a term of this boot is followed only by others of this boot. The follower looks at
        the terms once per round by `term`, so here they are read only until there is one.
        """
        if self._limit is not None:
            return self._limit
        if not self._term.is_of_this_boot() and not self.term().is_of_this_boot():
            return 0
        if self._checkpoint is None and not self._open():
            return 0
        assert self._checkpoint is not None
        return self._checkpoint.committed_offset

    def _open(self) -> bool:
        try:
            self._checkpoint = Checkpoint.open_read_only(self._path)
        except (FileNotFoundError, CorruptStoreError):  # missing, or not at its full size yet
            return False
        self._address = self._checkpoint.committed_word_address()
        return True

    def wait(self, seen: int, timeout_s: float) -> None:
        """Sleep until the committed offset differs from *seen*, for at most *timeout_s*."""
        if self._checkpoint is None:
            wake.wait(None, 0, min(timeout_s, _NO_CHECKPOINT_WAIT_S))
            return
        low_word = int.from_bytes((seen & 0xFFFFFFFF).to_bytes(4, "big"), "little")
        wake.wait(self._address, low_word, timeout_s)

    def close(self) -> None:
        """Unmap the checkpoint."""
        if self._checkpoint is not None:
            self._checkpoint.close()
