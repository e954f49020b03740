"""An archive whose runs are killed while its store keeps growing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from tests.built_store import BuiltStore
from tidemark.archive.manifest import load_manifest
from tidemark.archive.verify import verify_archive

_DRIVER = Path(__file__).with_name("archive_driver.py")
_DEADLINE_S = 900
_TOPICS, _QUEUES, _MESSAGES = ("orders", "books", "%RETRY%billing"), 2, 300
_KILLS = [
    ("rename", 0),  # of the first, empty manifest
    ("reading", 0),
    ("reading", 500),  # milliseconds after the start of the step
    ("writing", 0),
    ("writing", 200),
    ("writing", 500),
    ("verifying", 0),
    ("rename", 0),  # of the first file
    ("rename", 2),
    ("rename", len(_TOPICS)),  # of the manifest, after one file per topic
]


def append(store: BuiltStore) -> None:
    for number in range(_MESSAGES):
        for topic in _TOPICS:
            store.append(topic, b"%d" % number * 30, queue_id=number % _QUEUES)
    store.publish()


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_an_archive_run_killed_at_any_step_loses_and_duplicates_nothing(tmp_path: Path) -> None:
    """The manifest is that of the last finished run; readers of data/ never see a message twice."""
    store, folder = BuiltStore(tmp_path / "store"), tmp_path / "archive"
    for topic in _TOPICS:
        store.topic(topic, queues=_QUEUES)
    append(store)
    given = {"store": str(store.root), "folder": str(folder)}

    def run(kill_at: tuple[str, int]) -> int:
        command = [sys.executable, str(_DRIVER), json.dumps(given | {"kill_at": kill_at})]
        return subprocess.run(command, timeout=_DEADLINE_S, check=False).returncode

    for number, kill_at in enumerate(_KILLS):
        before = load_manifest(folder) if number else None
        assert run(kill_at) == -signal.SIGKILL, kill_at
        if before is not None:
            assert load_manifest(folder) == before
            assert {one.reason for one in verify_archive(folder).findings} <= {"FILE_UNKNOWN"}
            assert max(offsets_of(folder).values(), default=1) == 1
        if number in {0, len(_KILLS) // 2}:  # the following kills find an archive
            assert run(("nowhere", 0)) == 0
            append(store)
    assert run(("nowhere", 0)) == 0
    found = offsets_of(folder)
    assert found == Counter((*queue, offset) for queue, end in store.next.items() for offset in range(end))
    assert verify_archive(folder).findings == []
    assert not (folder / "staging").exists()


def offsets_of(folder: Path) -> Counter[tuple[str, int, int]]:
    """Count each place in data/, whether the manifest has it or not."""
    if not (folder / "data").exists():
        return Counter()
    partitioning = ds.partitioning(pa.schema([("topic", pa.string()), ("day", pa.string())]), flavor="hive")
    table = ds.dataset(folder / "data", partitioning=partitioning).to_table(["topic", "queue_id", "queue_offset"])
    return Counter(zip(*(column.to_pylist() for column in table.itercolumns()), strict=True))
