"""The clock that ages are measured with."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from services.writer.retention.trusted_clock import TrustedClock

HOUR_MS = 3_600_000
START_MS = 1_800_000_000_000


class Clocks:
    """The wall clock, and the machine's own clock, which cannot be set."""

    def __init__(self) -> None:
        self.wall_ms = START_MS
        self.running_ms = 5_000

    def go_on(self, duration_ms: int) -> None:
        self.wall_ms += duration_ms
        self.running_ms += duration_ms


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def age_clock(clocks: Clocks) -> TrustedClock:
    """Return a clock that accepts a forward jump after an hour."""
    return TrustedClock(grace_ms=HOUR_MS, wall_ms=lambda: clocks.wall_ms, running_ms=lambda: clocks.running_ms)


def test_the_trusted_clock_follows_the_wall_clock(clocks: Clocks, age_clock: TrustedClock) -> None:
    """It follows a slewed clock, and late reads."""
    for step_ms in (10_000, 50 * HOUR_MS, 1):
        clocks.go_on(step_ms)
        clocks.wall_ms += 40_000
        assert age_clock.now_ms() == clocks.wall_ms


def test_a_forward_jump_is_trusted_only_after_the_grace_period(clocks: Clocks, age_clock: TrustedClock) -> None:
    """The jump makes nothing older, and is logged once. If it lasts, it is accepted."""
    clocks.wall_ms += 24 * HOUR_MS
    with capture_logs() as logs:
        for _ in range(3):
            clocks.go_on(HOUR_MS // 4)
            assert age_clock.now_ms() == clocks.wall_ms - 24 * HOUR_MS
    assert [(event["event"], event["ahead_ms"]) for event in logs] == [("clock_set_ahead", 24 * HOUR_MS)]
    clocks.go_on(HOUR_MS // 2)
    assert age_clock.now_ms() == clocks.wall_ms


def test_a_reverted_forward_jump_is_forgotten(clocks: Clocks, age_clock: TrustedClock) -> None:
    """The next jump starts its own grace period."""
    clocks.wall_ms += 24 * HOUR_MS
    age_clock.now_ms()
    clocks.go_on(HOUR_MS // 2)
    clocks.wall_ms -= 24 * HOUR_MS
    assert age_clock.now_ms() == clocks.wall_ms
    clocks.go_on(HOUR_MS)
    clocks.wall_ms += 24 * HOUR_MS
    assert age_clock.now_ms() == clocks.wall_ms - 24 * HOUR_MS


def test_a_backward_jump_is_trusted_immediately(clocks: Clocks, age_clock: TrustedClock) -> None:
    """Everything becomes younger, and is kept."""
    clocks.wall_ms -= 24 * HOUR_MS
    assert age_clock.now_ms() == clocks.wall_ms
