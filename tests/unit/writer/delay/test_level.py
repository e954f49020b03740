from __future__ import annotations

import pytest

from services.writer.delay.level import RETRY_AFTER_FAILURE_MS, DelayLevel
from services.writer.delay.schedule_reader import Look

NOW_MS = 1_700_000_000_000
LEVEL_3_MS = 10_000
END = 1_000


def looked(next_due_ms: int | None, *, watermark: int = END) -> DelayLevel:
    """Return level 3 after a look that found *next_due_ms*."""
    level = DelayLevel(3, END)
    level.plan(Look(watermark, 0, 5, next_due_ms=next_due_ms), NOW_MS)
    return level


def test_a_level_is_read_when_its_next_message_is_due() -> None:
    level = looked(NOW_MS + 5_000)
    assert not level.is_time(NOW_MS + 4_999)
    assert level.is_time(NOW_MS + 5_000)


def test_a_level_with_a_due_message_is_read_immediately() -> None:
    assert looked(NOW_MS).is_time(NOW_MS)


def test_a_level_without_messages_is_not_read() -> None:
    level = looked(None)
    assert not level.is_blind
    assert not level.is_time(NOW_MS + 10**9)


def test_a_level_with_unindexed_messages_is_read_again_within_a_second() -> None:
    level = looked(None, watermark=END - 1)
    assert level.is_blind
    assert level.is_time(NOW_MS + 1_000)


def test_the_pause_of_a_level_that_waits_for_the_index_grows_to_a_second() -> None:
    level = looked(None, watermark=END - 1)
    pauses = []
    for _ in range(10):
        level.pause(NOW_MS)
        assert level.look_ms is not None
        pauses.append(level.look_ms - NOW_MS)
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1] == 1_000


@pytest.mark.parametrize(("set_back_ms", "expected"), [(0, False), (RETRY_AFTER_FAILURE_MS + 1, True)])
def test_a_due_time_beyond_the_levels_delay_is_treated_as_due(set_back_ms: int, expected: bool) -> None:
    """The clock was set back: the message would wait for the difference without this."""
    level = looked(NOW_MS + LEVEL_3_MS)
    assert level.is_time(NOW_MS - set_back_ms) is expected
