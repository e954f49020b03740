"""Backups: their contents, incremental copies, verification and restored stores."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import STORE_MS, write_log
from tests.pipeline_runs import DERIVED, build, plan_of, queue_files
from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.backup.manifest import load_manifest
from tidemark.backup.moment import look_at
from tidemark.backup.restore import restore_backup
from tidemark.backup.take import BackupResult, take_backup
from tidemark.backup.verify import verify_backup
from tidemark.errors import ArgumentIllegalError, CorruptStoreError, StoreClosedError, StoreContradictionError
from tidemark.index.check.scope import whole_store
from tidemark.index.check.store import check_store
from tidemark.store.originals.checked_copy import write_checked
from tidemark.store.originals.format_file import require_known_format, write_format
from tidemark.store.originals.next_offsets import load_next_offsets
from tidemark.store.originals.terms import begin_term
from tidemark.store.originals.tombstones import Tombstone, load_tombstones, save_tombstones
from tidemark.store.originals.topics import TopicConfig, load_topics, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage, Storage

FILE_SIZE = 4096
RECORDS = 150  # three files and a part of a fourth
GoldenStore = Callable[[str], Path]


def write_records(root: Path, count: int, *, store_timestamp: int = STORE_MS) -> None:
    """Write a log of *count* records as a broker leaves it. A shorter log is a prefix of it."""
    write_log(
        root / "commitlog",
        FILE_SIZE,
        [{"queue_offset": i, "body": b"%d" % i, "store_timestamp": store_timestamp} for i in range(count)],
    )


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    root = tmp_path / "store"
    write_records(root, RECORDS)
    save_topics(StorePaths(root).topics, {"TopicTest": TopicConfig("TopicTest", 1, 1)}, DiskStorage(), counter=1)
    return StorePaths(root)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def take(paths: StorePaths, folder: Path, storage: Storage | None = None) -> BackupResult:
    return take_backup(paths, folder, storage or DiskStorage(), store_name="tidemark-0")


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_backup_copies_only_new_files(paths: StorePaths, folder: Path) -> None:
    """Sealed files are copied once; the tail is copied each time, and the old tail is removed."""
    first = take(paths, folder)
    assert (first.copied_files, first.kept_files) == (4, 0)
    before = {path: path.stat().st_ino for path in (folder / "commitlog").iterdir()}
    write_records(paths.root, 3 * RECORDS)
    second = take(paths, folder)
    assert second.kept_files == len(before) == 3
    assert second.copied_bytes == second.manifest.end - 3 * FILE_SIZE
    assert {path: path.stat().st_ino for path in before} == before
    assert len(list((folder / "runs").iterdir())) == 1
    verified = verify_backup(folder)
    assert (verified.flaws, verified.records) == ([], 3 * RECORDS)


def test_a_restored_store_equals_the_original(paths: StorePaths, folder: Path, tmp_path: Path) -> None:
    """Log and config are the same, files have full size, rebuilt queues are equal, and a check finds nothing."""
    build(plan_of(paths.root))
    taken = take(paths, folder)
    restored = StorePaths(tmp_path / "restored")
    restore_backup(folder, restored, DiskStorage())
    assert files_of(restored.commit_log) == files_of(paths.commit_log)
    assert load_topics(restored.topics) == load_topics(paths.topics)
    assert not any((restored.root / name).exists() for name in (*DERIVED, "abort", "tidemark/indexer"))
    build(plan_of(restored.root))
    assert queue_files(restored.root) == queue_files(paths.root)
    report = check_store(restored, whole_store(restored))
    assert (report.findings, report.notes, report.end) == ([], [], taken.manifest.end)


def test_a_backup_of_a_broker_store_restores_all_files(golden_store: GoldenStore, tmp_path: Path) -> None:
    """The backup has every file of config/, and the offsets of queues whose records have all expired."""
    source = StorePaths(Path(shutil.copytree(golden_store("expired/store"), tmp_path / "store")))
    take(source, tmp_path / "backup")
    restored = StorePaths(tmp_path / "restored")
    manifest = restore_backup(tmp_path / "backup", restored, DiskStorage())
    assert (manifest.start, manifest.term) == (786_432, 0)
    config = {name for name in files_of(source.root / "config") if not name.endswith(".bak")}
    assert set(files_of(restored.root / "config")) == config
    numbers = load_next_offsets(restored.next_offsets)
    assert numbers is not None
    assert numbers.table["Orders", 0] > 600


def test_damaged_records_are_backed_up_and_reported(paths: StorePaths, folder: Path, tmp_path: Path) -> None:
    """A damaged record does not stop a backup; verification names it, and the restored log is not cut there."""
    build(plan_of(paths.root))
    path = paths.commit_log / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[data.index(b"\x01" + b"7" + b"\x09TopicTest") + 1] ^= 1
    path.write_bytes(data)
    end = take(paths, folder).manifest.end
    assert [flaw.reason for flaw in verify_backup(folder).flaws] == ["BODY_CRC"]
    restored = StorePaths(tmp_path / "restored")
    restore_backup(folder, restored, DiskStorage())
    assert check_store(restored, whole_store(restored)).end == end


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("reason", "damage"),
    [
        ("HASH", flip),
        ("FILE_MISSING", Path.unlink),
        ("FILE_SIZE", lambda path: path.write_bytes(path.read_bytes()[:-1])),
    ],
)
def test_a_damaged_backup_is_reported_refused_and_repaired(
    paths: StorePaths, folder: Path, tmp_path: Path, reason: str, damage: Callable[[Path], object]
) -> None:
    """Verification names the file; a restore refuses it and leaves nothing that a service opens."""
    take(paths, folder)
    damaged = folder / "commitlog" / f"{FILE_SIZE:020d}"
    damage(damaged)
    assert [(flaw.reason, folder / flaw.path) for flaw in verify_backup(folder).flaws] == [(reason, damaged)]
    restored = StorePaths(tmp_path / "restored")
    with pytest.raises((CorruptStoreError, FileNotFoundError)):
        restore_backup(folder, restored, DiskStorage())
    with pytest.raises(CorruptStoreError, match="was not restored completely"):
        require_known_format(restored)
    if reason != "HASH":  # a backup does not read a file that keeps its size; verify-backup does
        take(paths, folder)
        assert verify_backup(folder).flaws == []


def test_a_restore_to_a_folder_with_files_is_refused(paths: StorePaths, folder: Path, tmp_path: Path) -> None:
    """Nothing is overwritten."""
    take(paths, folder)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(StoreContradictionError, match="not empty"):
        restore_backup(folder, StorePaths(tmp_path / "full"), DiskStorage())


def test_a_backup_into_another_stores_backup_is_refused(paths: StorePaths, folder: Path, tmp_path: Path) -> None:
    """The other backup has files of the same name and size with other bytes, or is later."""
    take(paths, folder)
    before = files_of(folder)
    write_records(tmp_path / "other", 2 * RECORDS, store_timestamp=STORE_MS + 1)
    write_records(tmp_path / "shorter", RECORDS // 2)
    for other in ("other", "shorter"):
        with pytest.raises(StoreContradictionError):
            take(StorePaths(tmp_path / other), folder)
        assert verify_backup(folder).flaws == []
    assert files_of(folder) == before


def test_a_backup_into_the_store_is_refused(paths: StorePaths) -> None:
    """The backup would include itself."""
    with pytest.raises(ArgumentIllegalError):
        take(paths, paths.root / "backup")


class Expiring(DiskStorage):
    """Retention removes the first two files while the first one is copied."""

    def __init__(self, commit_log: Path) -> None:
        self._commit_log = commit_log

    def create(self, path: Path, size: int) -> int:
        for start in (0, FILE_SIZE):
            (self._commit_log / f"{start:020d}").unlink(missing_ok=True)
        return super().create(path, size)


def test_files_that_expire_during_a_backup_are_excluded(paths: StorePaths, folder: Path) -> None:
    """The backup then begins at the log's new beginning; earlier copied files are no part of it."""
    taken = take(paths, folder, Expiring(paths.commit_log))
    assert taken.manifest.start == 2 * FILE_SIZE
    assert verify_backup(folder).flaws == []
    assert {path.name for path in (folder / "commitlog").iterdir()} == {f"{2 * FILE_SIZE:020d}"}


def test_expired_files_are_removed_from_the_next_backup(paths: StorePaths, folder: Path) -> None:
    """A backup matches the store's current contents."""
    take(paths, folder)
    (paths.commit_log / f"{0:020d}").unlink()
    assert take(paths, folder).manifest.start == FILE_SIZE
    assert verify_backup(folder).flaws == []


def test_a_killed_backup_keeps_the_previous_one_sound_and_can_be_repeated(paths: StorePaths, folder: Path) -> None:
    """Kills happen at every step of a second backup that copies new sealed files."""
    take(paths, folder)
    old_end = load_manifest(folder).end
    write_records(paths.root, 2 * RECORDS)
    step = 0
    while True:
        copy = folder.with_name(f"copy-{step}")
        shutil.copytree(folder, copy)
        try:
            take(paths, copy, RecordingStorage(die_before=step))
            break
        except KilledHere:
            verified = verify_backup(copy)
            assert verified.flaws == []
            assert verified.manifest.end in (old_end, take(paths, copy).manifest.end)
            assert verify_backup(copy).records == 2 * RECORDS
        step += 1
    assert step > 20


def test_a_killed_restore_leaves_no_store_that_opens(paths: StorePaths, folder: Path, tmp_path: Path) -> None:
    """Afterwards the store either cannot be opened or is complete."""
    write_format(paths, DiskStorage())
    take(paths, folder)
    step = 0
    while True:
        restored = StorePaths(tmp_path / f"restored-{step}")
        try:
            restore_backup(folder, restored, RecordingStorage(die_before=step))
            break
        except KilledHere:
            if restored.commit_log.exists():
                with pytest.raises(CorruptStoreError):
                    require_known_format(restored)
        step += 1
    assert step > 10
    assert require_known_format(restored) == require_known_format(paths)


# -- the moment -------------------------------------------------------------------------------------------------------


def test_a_tombstone_after_the_backups_end_is_lowered_to_it(paths: StorePaths) -> None:
    """The topic's new records in the restored store are then not deleted."""
    end = look_at(paths).end
    stones = [Tombstone("TopicTest", end + 5000, {0: 200}), Tombstone("Old", 10, {0: 3})]
    save_tombstones(paths.tombstones, stones, DiskStorage())
    moment = look_at(paths)
    copy = paths.root / "copy.json"
    copy.write_bytes(moment.small_files["tidemark/writer/tombstones.json"])
    assert load_tombstones(copy) == [Tombstone("TopicTest", end, {0: 200}), Tombstone("Old", 10, {0: 3})]


def test_a_torn_config_file_is_backed_up_from_its_bak(paths: StorePaths) -> None:
    good = paths.topics.read_bytes()
    paths.topics.with_name("topics.json.bak").write_bytes(good)
    paths.topics.write_bytes(good[:20])
    assert look_at(paths).small_files["config/topics.json"] == good


def test_a_backup_of_an_unrecovered_store_is_refused(paths: StorePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a reboot without a clean stop, only the writer's recovery can find the end."""
    begin_term(paths.terms, 0, DiskStorage())
    write_checked(paths.terms, b"1 0 another-boot\n", DiskStorage())
    with pytest.raises(StoreClosedError, match="start the writer once"):
        look_at(paths)


def test_the_backup_manifest_has_version_name_end_and_hashes(paths: StorePaths, folder: Path) -> None:
    """The manifest has version, name, end and hashes, for other programs."""
    manifest = take(paths, folder).manifest
    content = json.loads((folder / "manifest.json").read_bytes())
    assert content["version"] == 1
    assert (content["store_name"], content["end"]) == ("tidemark-0", manifest.end)
    assert all(len(file["sha256"]) == 64 for file in content["files"])
    assert load_manifest(folder) == manifest
