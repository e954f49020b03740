"""DelayLevel: the delivery progress of one delay level, and when to check it next."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.format.tags import DELAY_LEVELS_MS

from .schedule_reader import Look

RETRY_AFTER_FAILURE_MS = 10_000  # RocketMQ's DELAY_FOR_A_PERIOD
_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 10, 1_000  # between two checks of the watermark


@dataclass
class DelayLevel:
    """One level. cursor: next queue offset to deliver; end: physical offset below which its messages may be stored."""

    number: int
    end: int
    cursor: int = 0
    look_ms: int | None = None  # when to check it, epoch milliseconds; None: no message is waiting
    is_blind: bool = False  # at the last check, its next message was not indexed yet
    watermark: int = -1  # at the last check
    pause_ms: int = _FIRST_PAUSE_MS

    def is_time(self, now_ms: int) -> bool:
        """Return True if the level is due for a check. A time too far ahead counts as due: the clock was set back."""
        if self.look_ms is None:
            return False
        return not now_ms < self.look_ms <= now_ms + DELAY_LEVELS_MS[self.number - 1] + RETRY_AFTER_FAILURE_MS

    def plan(self, look: Look, now_ms: int) -> None:
        """Set the time of the next check, after the messages of *look* were processed."""
        self.watermark, self.pause_ms = look.watermark, _FIRST_PAUSE_MS
        self.is_blind = look.next_due_ms is None and look.watermark < self.end
        self.look_ms = now_ms + self.pause_ms if self.is_blind else look.next_due_ms
        if (
            look.next_due_ms is not None and look.next_due_ms > now_ms
        ):  # so that messages due within milliseconds share a check
            self.look_ms = max(look.next_due_ms, now_ms + _FIRST_PAUSE_MS)

    def pause(self, now_ms: int) -> None:
        """Postpone the next check, because the watermark has not moved."""
        self.pause_ms = min(2 * self.pause_ms, _LONGEST_PAUSE_MS)
        self.look_ms = now_ms + self.pause_ms
