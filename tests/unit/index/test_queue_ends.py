"""Next offsets from queue files with damage, when a store is adopted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline_runs import build, plan_of
from tests.unit.pipeline.shards.test_rebuilding import DAMAGES, SETTINGS, make_store
from tidemark.index.queue_ends import queue_ends
from tidemark.store.paths import StorePaths


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_file_does_not_change_the_ends_of_other_queues(tmp_path: Path, how: str) -> None:
    root = make_store(tmp_path / "store")
    build(plan_of(root, **SETTINGS))
    paths = StorePaths(root)
    before = dict(queue_ends(paths, below=1 << 40))
    for path in (paths.consume_queue / "orders" / "0").iterdir():
        DAMAGES[how](path)
    after = dict(queue_ends(paths, below=1 << 40))
    assert {key: end for key, end in after.items() if key != ("orders", 0)} == {
        key: end for key, end in before.items() if key != ("orders", 0)
    }
