"""The latency fault table of RocketMQ 5.1.4 and newer (docs/format.md §15)."""

from __future__ import annotations

import pytest

from tidemark.client.wire.writer_latency import ISOLATION_S, Latency, avoided_s


@pytest.mark.parametrize(
    ("latency_s", "seconds"),
    [
        (0.0, 0),
        (0.05, 0),
        (0.1, 0),
        (0.549, 0),
        (0.55, 2),
        (1.8, 5),
        (3.0, 6),
        (5.0, 10),
        (ISOLATION_S, 10),
        (15.0, 30),
        (99.0, 30),
    ],
)
def test_a_later_answer_avoids_the_writer_for_longer(latency_s: float, seconds: float) -> None:
    """The highest row that the latency reaches applies."""
    assert avoided_s(latency_s) == seconds


def test_a_slow_writer_is_avoided_for_its_penalty_time() -> None:
    """The time starts at the late answer; a quick answer ends it."""
    latency = Latency()
    assert not latency.is_avoided(100.0, waiting_s=0)
    latency.observe(0.6, 100.0)
    assert latency.is_avoided(101.9, waiting_s=0)
    assert not latency.is_avoided(102.0, waiting_s=0)
    latency.observe(20.0, 200.0)
    latency.observe(0.01, 201.0)
    assert not latency.is_avoided(201.0, waiting_s=0)


def test_a_hanging_writer_is_avoided_before_it_answers() -> None:
    """Its oldest send has been unanswered for too long."""
    assert Latency().is_avoided(0.0, waiting_s=0.55)
    assert not Latency().is_avoided(0.0, waiting_s=0.5)
