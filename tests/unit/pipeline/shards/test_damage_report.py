"""Damage that one shard of queues reports, in its ledger and in its counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from services.indexer.pipeline.shards.damage_report import DamageReport
from tidemark.format.dispatch_request import DISPATCH_REQUEST, Fault
from tidemark.index.build import Oddity
from tidemark.index.dispatch import QueueRun
from tidemark.index.ledger import Ledger, read_ledger
from tidemark.store.storage import DiskStorage


@pytest.fixture
def report(tmp_path: Path) -> DamageReport:
    return DamageReport(Ledger(tmp_path, 3, DiskStorage()))


def run_of(*faults: Fault) -> QueueRun:
    """Return a run of `orders/7` with records of 200 bytes from physical offset 1,000 on."""
    requests = np.zeros(len(faults), DISPATCH_REQUEST)
    requests["physical_offset"] = 1000 + 200 * np.arange(len(faults))
    requests["message_size"] = 200
    requests["queue_offset"] = 50 + np.arange(len(faults))
    requests["fault"] = faults
    return QueueRun("orders", 7, requests)


def reported(folder: Path) -> list[tuple[int, str, str | None, int | None]]:
    return [
        (entry["physical_offset"], entry["reason"], entry["topic"], entry["queue_offset"])
        for entry in read_ledger(folder)
    ]


def test_only_records_with_a_fault_are_reported(report: DamageReport, tmp_path: Path) -> None:
    report.report_faults(run_of(Fault.NONE, Fault.BODY_CRC, Fault.NONE, Fault.PROPERTY_CRC))
    assert reported(tmp_path) == [(1200, "BODY_CRC", "orders", 51), (1600, "PROPERTY_CRC", "orders", 53)]
    assert report.damages == 2


def test_a_place_counts_once_however_often_it_is_built(report: DamageReport, tmp_path: Path) -> None:
    for _ in range(3):
        report.report_faults(run_of(Fault.BODY_CRC))
    assert (report.damages, len(read_ledger(tmp_path))) == (1, 1)


def test_each_record_of_an_illegal_topic_is_damage(report: DamageReport, tmp_path: Path) -> None:
    report.report_illegal_topic(run_of(Fault.NONE, Fault.NONE))
    assert [(place, reason) for place, reason, *_ in reported(tmp_path)] == [(1000, "TOPIC"), (1200, "TOPIC")]


@pytest.mark.parametrize(
    ("reason", "damages"),
    [("QUEUE_HOLE", 0), ("QUEUE_REPEAT", 0), ("QUEUE_RESTART", 0), ("QUEUE_OFFSET", 1), ("BATCH_SIZE", 1)],
)
def test_an_oddity_is_damage_if_its_record_got_no_unit(report: DamageReport, reason: str, damages: int) -> None:
    report.report_oddity(run_of(Fault.NONE), Oddity(1000, 200, reason, 50))
    assert (report.oddities, report.damages) == (1, damages)
