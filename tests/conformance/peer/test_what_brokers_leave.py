"""Further files in a broker's directory, apart from log, queues and index: ignored, or refused (docs/format.md §10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import properties, wire_batch, write_log
from tests.integration.writer.harness import RunningWriter
from tests.pipeline_runs import build, end_of, plan_of
from tests.query_server import serve_query
from tidemark.errors import CorruptStoreError, StoreContradictionError, StoreError
from tidemark.read.store_reader import StoreReader

LOG_FILE, QUEUE_FILE = 4096, 400
LEFT_BEHIND = {
    "timerwheel": b"whatever",
    "timerlog/00000000000000000000": b"whatever",
    "epochFileCheckpoint": b"whatever",
    "brokerIdentity": b"whatever",
    "abort.bak": b"",
    "config/consumerOffset.json.bak": b'{"offsetTable":{"T@g":{0:5}}}',
    "config/delayOffset.json": b"{3:12}",
    "config/delayOffset.json.bak": b"whatever",
    "config/timercheck": b"whatever",
    "config/rocksdb/topics/CURRENT": b"whatever",
    "transaction/00000000000000000000": b"whatever",
    "compaction/position-checkpoint.bak": b"whatever",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a log of 40 records in two files, as a broker leaves it."""
    fields = [{"body": b"x" * 50, "queue_offset": number, "topic": b"T"} for number in range(40)]
    write_log(tmp_path / "commitlog", LOG_FILE, fields)
    return tmp_path


def log_file(root: Path, number: int) -> Path:
    return root / "commitlog" / f"{number * LOG_FILE:020d}"


def bodies(root: Path) -> int:
    """Run the pipeline; return the number of readable messages."""
    build(plan_of(root, index_slots=10, consume_queue_file_size_bytes=QUEUE_FILE))
    reader = StoreReader(root)
    return reader.bounds(reader.queue("T", 0), reader.watermark()).max_offset


def test_own1_a_last_log_file_of_zeros_is_treated_as_preallocated(root: Path) -> None:
    """The log ends in the file before, for the pipeline and for the writer, which continues there."""
    end = end_of(root)
    log_file(root, 2).write_bytes(bytes(LOG_FILE))
    log_file(root, 3).write_bytes(bytes(LOG_FILE))
    assert LOG_FILE < end == end_of(root) < 2 * LOG_FILE
    assert bodies(root) == 40
    with RunningWriter(root, commit_log_segment_size_bytes=LOG_FILE) as writer:
        assert writer.info().recovered_end_offset == end
        assert writer.append("T", wire_batch((b"y", b"", 0))).queue_offset == 40


@pytest.mark.parametrize("size", [1, LOG_FILE - 1, LOG_FILE + 1, 2 * LOG_FILE])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_own2_a_log_file_of_another_size_is_refused(root: Path, number: int, size: int) -> None:
    """Writer, pipeline and readers refuse it, whichever file it is; nothing is changed."""
    log_file(root, number).write_bytes(bytes(size))
    before = {path: path.read_bytes() for path in sorted((root / "commitlog").iterdir())}
    settings = {"commit_log_segment_size_bytes": LOG_FILE}
    with pytest.raises(StoreContradictionError):
        plan_of(root, **settings)
    with pytest.raises((StoreContradictionError, CorruptStoreError)):
        StoreReader(root)
    with pytest.raises(StoreContradictionError), RunningWriter(root, commit_log_segment_size_bytes=LOG_FILE):
        pass
    assert {path: path.read_bytes() for path in sorted((root / "commitlog").iterdir())} == before


@pytest.mark.parametrize("name", [".DS_Store", "x.tmp", "00000000000000008192.tmp", "8192"])
def test_own2_a_stray_file_in_the_logs_folder_is_refused(root: Path, name: str) -> None:
    """A broker would not load it either; subfolders are allowed."""
    (root / "commitlog" / name).write_bytes(b"")
    with pytest.raises(StoreError, match="foreign"):
        plan_of(root)
    with pytest.raises(StoreError, match="foreign"), RunningWriter(root, commit_log_segment_size_bytes=LOG_FILE):
        pass
    (root / "commitlog" / name).unlink()
    (root / "commitlog" / name).mkdir()
    assert bodies(root) == 40


def test_own2_a_zero_length_last_log_file_is_removed(root: Path) -> None:
    """It is left from an interrupted creation. Only the owner removes it."""
    log_file(root, 2).write_bytes(b"")
    assert bodies(root) == 40
    assert log_file(root, 2).exists()
    with RunningWriter(root, commit_log_segment_size_bytes=LOG_FILE) as writer:
        assert writer.append("T", wire_batch((b"y", b"", 0))).queue_offset == 40
    assert not log_file(root, 2).exists() or log_file(root, 2).stat().st_size == LOG_FILE


def test_own2_queue_files_of_wrong_size_are_rebuilt_and_stray_files_are_refused(root: Path) -> None:
    """A queue file of no length at the end is removed, as in the log."""
    assert bodies(root) == 40
    folder = root / "consumequeue" / "T" / "0"
    assert len(list(folder.iterdir())) == 2
    last = folder / f"{2 * QUEUE_FILE:020d}"
    last.write_bytes(b"")
    assert bodies(root) == 40
    assert not last.exists()
    last.write_bytes(bytes(7))
    assert bodies(root) == 40
    assert not last.exists() or last.stat().st_size == QUEUE_FILE
    (folder / "stray").write_bytes(b"")
    with pytest.raises(StoreError):
        build(plan_of(root, index_slots=10, consume_queue_file_size_bytes=QUEUE_FILE))


def test_own2_other_files_of_a_broker_are_not_changed(root: Path) -> None:
    """Timer, controller, metadata and backups do not change. A backup replaces its file."""
    for name, content in LEFT_BEHIND.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    assert bodies(root) == 40
    with RunningWriter(root, commit_log_segment_size_bytes=LOG_FILE) as writer:
        assert writer.append("T", wire_batch((b"y", properties({"KEYS": "k"}), 0))).queue_offset == 40
    with serve_query(root, index_slots=10, index_entries=40) as client:
        assert client.get("/v1/topics/T/queues/0").json()["max_offset"] == 40
        assert client.get("/v1/groups/g/topics/T/queues/0/offset").json()["offset"] == 5
    assert {name: (root / name).read_bytes() for name in LEFT_BEHIND} == LEFT_BEHIND


def test_own2_queues_in_a_database_are_refused(root: Path) -> None:
    """If a broker keeps queues in RocksDB, files next to the database would be useless."""
    (root / "consumequeue").mkdir()
    (root / "consumequeue" / "CURRENT").write_bytes(b"MANIFEST-000001\n")
    with pytest.raises(StoreContradictionError, match="RocksDB"):
        bodies(root)
