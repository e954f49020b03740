"""The times of appends, and the warnings about slow ones."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from services.writer.batch.batch import Batch, QueueKey, Wrapper
from services.writer.batch.record_encoder import u8
from services.writer.submission import append_times
from services.writer.submission.append_times import AppendTimes


class Clock:
    """Replaces `time`: both clocks read *now*."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(append_times, "time", clock)
    return clock


def append(times: AppendTimes, clock: Clock, seconds: float) -> None:
    """Record one append that takes *seconds*."""
    answered: list[Batch] = []
    answer = times.measuring(answered.append)
    clock.now += seconds
    batch = Batch(QueueKey("t", 0), u8(b"\x01t"), u8(b""), 3, 0, Wrapper(bytes(8), 0), b"", u8(b""))
    answer(batch)
    assert answered == [batch]


def test_slow_append_warnings_are_rate_limited_and_counted(clock: Clock) -> None:
    """The next one has the number of slow appends since, and the longest time."""
    times = AppendTimes(500)
    with capture_logs() as events:
        for seconds in (0.5, 0.6, 0.7, 0.001, 0.9, 0.55):
            append(times, clock, seconds)
    assert [(event["waited_ms"], event["appends"], event["longest_ms"]) for event in events] == [
        (600, 1, 600),
        (900, 2, 900),
    ]
    assert {(event["event"], event["topic"], event["messages"]) for event in events} == {("append_waited", "t", 3)}
    assert sum(times.seconds.counts) == 6
    assert times.seconds.total == pytest.approx(3.251)


def test_disabled_slow_append_warnings_are_not_logged(clock: Clock) -> None:
    """The time is still measured."""
    times = AppendTimes(0)
    with capture_logs() as events:
        append(times, clock, 1000)
    assert events == []
    assert sum(times.seconds.counts) == 1
