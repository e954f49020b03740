from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import pytest

from services.writer.replication.group_metrics import GroupMetrics
from services.writer.replication.leadership import Leadership
from services.writer.replication.replica_lags import Lag
from services.writer.replication.writer_replication import WriterReplication
from tidemark.replication.group_state import GroupState
from tidemark.replication.known_state import KnownState
from tidemark.replication.member_files import MemberFiles
from tidemark.store.storage import DiskStorage

STATE = GroupState(7, 3, "a.0", frozenset({"a.0", "b.1"}), frozenset(), 2, "g")


class Led:
    """A leadership with this end of the lease."""

    valid_until_s: float | None = None


class Writing:
    """A writer with one replica."""

    def __init__(self) -> None:
        self.lags = {"b": Lag(300, 1.5)}
        self.set_changes = {"joined": 2, "left": 1}


def values(metrics: GroupMetrics) -> dict[str, float]:
    return {
        sample.name.removeprefix("tidemark_replication_") + "".join(sample.labels.values()): sample.value
        for metric in metrics.collect()
        for sample in metric.samples
    }


@pytest.fixture
def known(tmp_path: Path) -> KnownState:
    return KnownState(MemberFiles(tmp_path, DiskStorage()))


def made(known: KnownState, led: Any) -> GroupMetrics:
    return GroupMetrics(3, known, cast(Leadership, led))


def test_a_replica_shows_what_it_has_heard_of_its_group(known: KnownState) -> None:
    metrics = made(known, Led())
    assert values(metrics)["is_writer"] == 0
    assert "epoch" not in values(metrics)
    known.adopt(STATE)
    shown = values(metrics)
    assert [shown[name] for name in ("epoch", "in_sync_members", "min_in_sync", "members")] == [3, 2, 2, 3]
    assert "lease_seconds_left" not in shown


def test_the_writer_shows_its_replicas_and_its_lease(known: KnownState) -> None:
    led = Led()
    metrics = made(known, led)
    metrics.writer = cast(WriterReplication, Writing())
    shown = values(metrics)
    assert (shown["is_writer"], shown["lag_bytesb"], shown["lag_secondsb"]) == (1, 300, 1.5)
    assert (shown["set_changes_totaljoined"], shown["set_changes_totalleft"]) == (2, 1)
    assert "lease_seconds_left" not in shown, "an operator chooses the writer"
    led.valid_until_s = time.clock_gettime(time.CLOCK_BOOTTIME) + 100
    assert 90 < values(metrics)["lease_seconds_left"] <= 100
    led.valid_until_s = 0.0
    assert values(metrics)["lease_seconds_left"] == 0
