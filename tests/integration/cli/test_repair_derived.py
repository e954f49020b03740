"""`tidemark store repair` over damaged queue files, index files and marks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cli.test_store_verbs import run
from tests.pipeline_runs import GOLDEN_SETTINGS, build, plan_of, queue_files, without_derived
from tidemark.store.paths import StorePaths

GoldenStore = Callable[[str], Path]
NAME = "killed/store-recovered"


def test_repair_rebuilds_damaged_derived_files(golden_store: GoldenStore, tmp_path: Path) -> None:
    root = without_derived(golden_store(NAME), tmp_path / "store")
    build(plan_of(root, **GOLDEN_SETTINGS[NAME]))
    clean = queue_files(root)
    paths = StorePaths(root)
    status, output, _ = run("repair", root, "--output", "json")
    done = json.loads(output)
    assert {one["outcome"] for one in done.pop("files")} <= {"sound", "absent", "checked copy written"}
    assert (status, done) == (0, {"found": 0, "queues": [], "index_from": None, "left": []})

    folders = sorted(folder for folder in paths.consume_queue.glob("*/*") if len(list(folder.iterdir())) > 1)[:3]
    first, second, third = (sorted(folder.iterdir()) for folder in folders)
    first[0].write_bytes(b"\x11" * first[0].stat().st_size)
    second[-1].write_bytes(second[-1].read_bytes()[:-1])
    third[0].unlink()
    index = sorted(paths.index.iterdir())[1]
    index.write_bytes(index.read_bytes()[:2000] + bytes(index.stat().st_size - 2000))
    assert run("check", root)[0] == 1
    status, output, errors = run("repair", root, "--output", "json")
    done = json.loads(output)
    assert status == 0, errors
    assert done["queues"] == sorted(f"{folder.parent.name}/{folder.name}" for folder in folders)
    assert done["index_from"] == index.name
    assert queue_files(root) == clean
    assert run("check", root)[0] == 0
    assert list((paths.indexer / "set-aside").iterdir())


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"junk"])
def test_repair_replaces_unreadable_marks(golden_store: GoldenStore, tmp_path: Path, content: bytes) -> None:
    root = without_derived(golden_store(NAME), tmp_path / "store")
    build(plan_of(root, **GOLDEN_SETTINGS[NAME]))
    clean = queue_files(root)
    shutil.rmtree(root / "consumequeue" / sorted(p.name for p in (root / "consumequeue").iterdir())[0])
    StorePaths(root).marks.write_bytes(content)
    status, _, errors = run("repair", root)
    assert status == 0, errors
    assert queue_files(root) == clean
