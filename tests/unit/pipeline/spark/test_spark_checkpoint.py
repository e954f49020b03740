"""Spark's checkpoint at the start of a pipeline: none of its earlier files is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.spark.spark_checkpoint import new_checkpoint


def plan_of(root: Path) -> EpochPlan:
    plan = make_plan(PipelineSettings(store_root=root))
    plan.paths.indexer.mkdir(parents=True)
    return plan


def test_earlier_checkpoints_are_removed(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    earlier = new_checkpoint(plan) / "follower-0"
    (earlier / "offsets").mkdir(parents=True)
    (earlier / "metadata").write_bytes(b"")
    folder = new_checkpoint(plan)
    assert not earlier.exists()
    assert not folder.exists()
    assert folder.parent == plan.paths.indexer / "spark"


@pytest.mark.parametrize("content", [b"", b"junk"])
def test_a_file_in_place_of_the_checkpoint_folder_is_removed(tmp_path: Path, content: bytes) -> None:
    plan = plan_of(tmp_path)
    (plan.paths.indexer / "spark").write_bytes(content)
    new_checkpoint(plan).mkdir(parents=True)
