"""`--once` on a store whose writer is stopped: what it builds holds, in the writer's last term and in the next."""

from __future__ import annotations

from pathlib import Path

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import make_plan
from tests.builders import write_log
from tests.pipeline_runs import build, plan_of
from tidemark.read.watermark import WatermarkReader
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.storage import DiskStorage
from tidemark.store.terms import begin_term

FILE_SIZE = 4096


def test_a_stopped_store_is_visible_once_it_is_built(tmp_path: Path) -> None:
    """The writer's only term began at an empty log: that must not take back what was built since."""
    plan = plan_of(tmp_path)
    begin_term(plan.paths.terms, 0, DiskStorage())
    write_log(plan.paths.commit_log, FILE_SIZE, [{"queue_offset": i} for i in range(50)])
    plan = plan_of(tmp_path)
    assert plan.limit is not None
    assert plan.limit > FILE_SIZE
    build(plan)
    assert WatermarkReader(plan.paths).read().physical_offset == plan.limit


def test_the_next_term_goes_on_where_it_was_built_to(tmp_path: Path) -> None:
    """Nothing is built once more when the log has lost nothing."""
    plan = plan_of(tmp_path)
    begin_term(plan.paths.terms, 0, DiskStorage())
    write_log(plan.paths.commit_log, FILE_SIZE, [{"queue_offset": i} for i in range(50)])
    plan = plan_of(tmp_path)
    assert plan.limit is not None
    build(plan)
    begin_term(plan.paths.terms, plan.limit, DiskStorage())
    checkpoint = Checkpoint.open_to_write(plan.paths.checkpoint, DiskStorage())
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, plan.limit)
    checkpoint.close()
    beside_the_writer = make_plan(PipelineSettings(store_root=tmp_path, once=True))
    assert [progress.start_offset for progress in build(beside_the_writer)] == [plan.limit] * plan.tasks
