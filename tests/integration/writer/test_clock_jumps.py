"""The wall clock is set back, and ahead, under a running writer."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import wire_batch

from .harness import RunningWriter, stored_records

pytestmark = pytest.mark.integration
HOUR_NS = 3_600 * 10**9
SetClock = Callable[[int], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Return a function that offsets the writer's wall clock by nanoseconds. (gRPC's client reads another clock.)"""
    true_ns = time.time_ns

    def set_to(difference_ns: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: true_ns() + difference_ns)

    return set_to


def test_store_timestamps_never_decrease(tmp_path: Path, set_clock: SetClock) -> None:
    """Searches by time rely on it, also over a restart. Offsets stay dense."""
    for differences in ([0, -1, 24, 23], [-2, 0, 25]):
        with RunningWriter(tmp_path) as writer:
            for hours in differences:
                set_clock(hours * HOUR_NS)
                writer.append("t", wire_batch((b"body", b"", 0)), queue_id=0)
    records = stored_records(tmp_path)
    times = [record.store_timestamp for record in records]
    assert times == sorted(times)
    assert [record.queue_offset for record in records] == list(range(7))
    jumps = [later - earlier > HOUR_NS // 10**6 // 2 for earlier, later in itertools.pairwise(times)]
    assert jumps == [False, True, False, False, False, True]  # it follows the clock ahead, and never back


def test_a_repeat_is_recognised_after_clock_jumps(tmp_path: Path, set_clock: SetClock) -> None:
    """The window counts batches, not time."""
    with RunningWriter(tmp_path) as writer:
        first = writer.append("t", wire_batch((b"body", b"", 0)), request_id="once")
        for hours in (-1, 24):
            set_clock(hours * HOUR_NS)
            again = writer.append("t", wire_batch((b"body", b"", 0)), request_id="once")
            assert (again.duplicate, again.queue_offset) == (True, first.queue_offset)


def test_answers_do_not_depend_on_the_wall_clock(tmp_path: Path, set_clock: SetClock) -> None:
    """Timeouts and group commits use a monotonic clock."""
    with RunningWriter(tmp_path, flush_mode="sync") as writer:
        for hours in (0, 24, -1):
            set_clock(hours * HOUR_NS)
            began = time.monotonic()
            writer.append("t", wire_batch((b"body", b"", 0)))
            assert time.monotonic() - began < 5
