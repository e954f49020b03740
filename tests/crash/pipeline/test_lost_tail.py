"""A power cut lost the end of an `async` log that the pipeline had already built; no writer has run since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import properties, write_log
from tests.pipeline_runs import build, index_contents, plan_of, queue_files, without_derived
from tidemark.store.flushed import Flushed
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.crash

SETTINGS: dict[str, Any] = {"index_slots": 16, "index_entries": 8, "consume_queue_file_size_bytes": 200}
COUNT, KEPT = 30, 17


def test_queues_index_and_watermark_are_lowered_to_the_logs_end(tmp_path: Path) -> None:
    """The marks were ahead of the log (RocketMQ #6609): all units and keys of lost records are removed."""
    store = tmp_path / "store"
    fields = [
        {"topic": b"t", "body": b"%d" % i, "queue_offset": i, "properties": properties({"KEYS": f"k{i}"})}
        for i in range(COUNT)
    ]
    placed = write_log(store / "commitlog", 8192, fields)
    plan = plan_of(store, **SETTINGS)
    build(plan)
    end = placed[KEPT].physical_offset
    with (store / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(end)
        file.write(bytes(8192 - end))
    plan.paths.writer.mkdir()
    Flushed.open_to_write(plan.paths.flushed, DiskStorage(), flushed_offset=end, commits_ahead=True).close()
    plan = plan_of(store, **SETTINGS)
    build(plan)
    marks = Marks.open_read_only(plan.paths.marks)
    assert marks.watermark() == marks.greatest_durable() == plan.limit == end
    marks.close()
    fresh = without_derived(store, tmp_path / "fresh")
    (fresh / "tidemark" / "indexer" / "marks").unlink()
    build(plan_of(fresh, **SETTINGS))
    assert queue_files(store) == queue_files(fresh)
    assert index_contents(store) == index_contents(fresh)
