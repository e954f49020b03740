"""Passes over a topic, latencies and the timer of the clients' programs."""

from __future__ import annotations

import time

import pytest

from benchmarks.peers.python import meter
from benchmarks.peers.python.load import BODY_BYTES, CONSUME, LATENCY, Load
from benchmarks.peers.python.meter import Latencies, Pass, StalledError
from benchmarks.peers.python.timer import Timer

READ = Load(CONSUME, warm_s=0, measured_s=1, messages=3)
SENT = Load(LATENCY, warm_s=1, measured_s=2, rate=2)  # two messages of the warm-up and four that count
BODY = bytes(BODY_BYTES)


def test_a_pass_is_over_with_its_last_message() -> None:
    """A pass is not over before."""
    one = Pass(READ, reads_bodies=True)
    one.add([BODY, BODY])
    assert not one.is_over()
    one.add([BODY])
    assert one.is_over()


@pytest.mark.parametrize("bodies", [[BODY] * 4, [BODY, BODY, b"short"]], ids=["too many", "another size"])
def test_a_pass_over_other_messages_is_an_error(bodies: list[bytes]) -> None:
    """A client that returns a message twice, or not its body, gives no figure."""
    one = Pass(READ, reads_bodies=True)
    one.add(bodies)
    with pytest.raises(ValueError, match="expected 3 messages"):
        one.is_over()


def test_missing_messages_end_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost message is an error, not an endless run."""
    monkeypatch.setattr(meter, "STALLED_S", 0.0)
    one = Pass(READ, reads_bodies=True)
    one.add([BODY])
    time.sleep(0.001)
    with pytest.raises(StalledError, match="1 of 3 messages arrived"):
        one.add([])


def test_latencies_count_from_when_messages_were_due() -> None:
    """Messages of the warm-up do not count, however late they were."""
    latencies, now = Latencies(SENT), time.perf_counter_ns()
    bodies = [latencies.body(number, now - (10**9 if number < 2 else 10**6)) for number in range(6)]
    assert not latencies.add(bodies[:5])
    assert latencies.add(bodies[5:])
    answer = latencies.answer()
    assert answer["samples"] == 4
    assert 1 <= answer["p50_ms"] <= answer["p99_ms"] <= answer["max_ms"] < 1000


def test_a_message_that_arrives_twice_gives_no_latencies() -> None:
    """The number of samples would hide a lost message."""
    latencies = Latencies(SENT)
    latencies.add([latencies.body(5, 0)] * 6)
    with pytest.raises(ValueError, match="expected 4 latencies, got 6"):
        latencies.answer()


def test_the_timer_reports_each_tick_once() -> None:
    """Ticks that were missed are reported together, at their time and not before."""
    timer, ticks = Timer(1000, lead_s=0.01), 0
    while ticks < 20:
        ticks += timer.wait()
        assert time.perf_counter_ns() >= timer.due_ns(ticks - 1)
    timer.close()
