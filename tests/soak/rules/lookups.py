"""Lookups find every acknowledged and visible message."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from tests.soak.facts import Facts, record_at
from tests.soak.history import ACKNOWLEDGED, NOT_FOUND, NOT_YET_VISIBLE


def not_found(facts: Facts) -> Iterator[str]:
    """Report NOT_FOUND for the id of an acknowledged message, and NOT_YET_VISIBLE for one known to be visible."""
    visible = _Visible(facts)
    for answer in facts.answers:
        if answer.kind != "by_id" or answer.outcome not in (NOT_FOUND, NOT_YET_VISIBLE) or answer.wanted is None:
            continue
        append = facts.sent.get(answer.wanted)
        if (
            append is None
            or append.outcome != ACKNOWLEDGED
            or facts.is_gone(append)
            or (append.completed or 0) >= answer.invoked
        ):
            continue
        end = record_at(append, append.contents.index(answer.wanted))[1]
        if answer.outcome == NOT_FOUND or visible.before(answer.invoked) >= end:
            yield f"{answer.client} asked at {answer.invoked:.3f} for {answer.wanted} by its id: {answer.outcome}"


class _Visible:
    """The greatest watermark that any client knew by a time."""

    def __init__(self, facts: Facts) -> None:
        self._times: list[float] = []
        self._watermarks: list[int] = []
        for answer in sorted(facts.right, key=lambda answer: answer.completed):
            if answer.watermark is not None:
                self._times.append(answer.completed)
                self._watermarks.append(max(answer.watermark, self._watermarks[-1] if self._watermarks else 0))

    def before(self, time: float) -> int:
        at = bisect_left(self._times, time)
        return self._watermarks[at - 1] if at else 0


def missed_by_key(facts: Facts) -> Iterator[str]:
    """Report a key lookup whose watermark covers the message, but whose answer lacks it."""
    for answer in facts.right:
        if answer.kind != "by_key" or answer.wanted is None or answer.watermark is None:
            continue
        append = facts.sent.get(answer.wanted)
        if append is None or append.outcome != ACKNOWLEDGED or facts.is_gone(append):
            continue
        end = record_at(append, append.contents.index(answer.wanted))[1]
        if end <= answer.watermark and all(seen.content != answer.wanted for seen in answer.seen):
            yield (
                f"{answer.client} did not find {answer.wanted} by its key; it ends at {end}, the watermark was "
                f"{answer.watermark}"
            )
