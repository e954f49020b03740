"""Indexing after a writer has stopped: readers see all of its messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import wire_batch
from tests.integration.writer.harness import RunningWriter
from tests.pipeline_runs import build, plan_of
from tidemark.read.store_reader import StoreReader

pytestmark = pytest.mark.integration


def test_a_log_drained_without_a_writer_can_be_read(tmp_path: Path) -> None:
    """The marks belong to the writer's last term: its recovered end, 0 in a new store, does not hold readers back."""
    ends = []
    for number in range(2):
        with RunningWriter(tmp_path) as writer:
            assert writer.append(packed=wire_batch((b"x", b"", 0))).queue_offset == number
            ends.append(writer.info().committed_offset)
        build(plan_of(tmp_path, index_slots=10))
        reader = StoreReader(tmp_path)
        watermark = reader.watermark()
        assert (watermark.physical_offset, watermark.term) == (ends[-1], number + 1)
        assert reader.bounds(reader.queue("t", 0), watermark)[:2] == (0, number + 1)
