"""DelayLevel: how far one level is delivered, and when to look at it next."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.format.tags import DELAY_LEVELS_MS

from .schedule_reader import Look

RETRY_AFTER_FAILURE_MS = 10_000  # the peer's DELAY_FOR_A_PERIOD
_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 10, 1_000  # between two looks at whether the watermark has moved


@dataclass
class DelayLevel:
    """One level. cursor: next queue offset to deliver; end: the log may hold its messages up to here."""

    number: int
    end: int
    cursor: int = 0
    look_ms: int | None = None  # when to look at it; None: nothing is waiting
    is_blind: bool = False  # what it waits for was not indexed at the last look
    watermark: int = -1  # then
    pause_ms: int = _FIRST_PAUSE_MS

    def is_time(self, now_ms: int) -> bool:
        """Whether to look at it now; also when its time is further away than it can be: the clock was set back."""
        if self.look_ms is None:
            return False
        return not now_ms < self.look_ms <= now_ms + DELAY_LEVELS_MS[self.number - 1] + RETRY_AFTER_FAILURE_MS

    def plan(self, look: Look, now_ms: int) -> None:
        """Decide when to look again, after everything that *look* has found was dealt with."""
        self.watermark, self.pause_ms = look.watermark, _FIRST_PAUSE_MS
        self.is_blind = look.next_due_ms is None and look.watermark < self.end
        self.look_ms = now_ms + self.pause_ms if self.is_blind else look.next_due_ms
        if look.next_due_ms is not None and look.next_due_ms > now_ms:  # those of a few milliseconds together
            self.look_ms = max(look.next_due_ms, now_ms + _FIRST_PAUSE_MS)

    def pause(self, now_ms: int) -> None:
        """Look later: the watermark stands still."""
        self.pause_ms = min(2 * self.pause_ms, _LONGEST_PAUSE_MS)
        self.look_ms = now_ms + self.pause_ms
