"""A series of equally sized files as one address space."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.store.recording_storage import RecordingStorage
from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name, size_on_disk
from tidemark.store.storage import DiskStorage

SIZE = 64


def put(folder: Path, start: int, content: bytes = b"", size: int = SIZE) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{start:020d}").write_bytes(content.ljust(size, b"\0"))


def test_a_file_name_is_20_digits() -> None:
    """It is zero padded, without grouping (docs/format.md §1)."""
    assert file_name(1_073_741_824) == "00000000001073741824"


def test_a_write_across_files_creates_files_of_full_size(tmp_path: Path) -> None:
    """A write creates the files it needs, each with its full size."""
    files = MappedFileQueue(tmp_path / "q", SIZE, DiskStorage())
    data = bytes(range(150))
    files.write(0, data)
    files.flush(0)
    assert sorted(path.name for path in (tmp_path / "q").iterdir()) == [file_name(0), file_name(64), file_name(128)]
    assert {path.stat().st_size for path in (tmp_path / "q").iterdir()} == {SIZE}
    assert files.read(0, 10) == data[:10]
    assert (files.starts, files.min_offset, files.capacity_end) == ([0, 64, 128], 0, 192)
    files.close()


def test_a_read_ends_at_its_file_and_is_empty_without_one(tmp_path: Path) -> None:
    """A read ends at its file's end; without a file it returns no bytes."""
    put(tmp_path, 128, b"abc")
    files = MappedFileQueue(tmp_path, SIZE)
    assert files.read(128, 1000) == b"abc".ljust(SIZE, b"\0")
    assert files.read(130, 2) == b"c\0"
    assert files.read(64, 10) == files.read(192, 10) == files.read(-5, 10) == files.read(128, 0) == b""
    buffer = bytearray(100)
    assert files.read_into(129, memoryview(buffer)) == SIZE - 1
    assert buffer[:2] == b"bc"
    assert files.read_into(0, memoryview(buffer)) == 0
    assert (files.min_offset, files.capacity_end) == (128, 192)
    files.close()


def test_a_queue_without_a_folder_is_empty(tmp_path: Path) -> None:
    """Reading creates nothing."""
    files = MappedFileQueue(tmp_path / "none", SIZE)
    assert (files.starts, files.min_offset, files.capacity_end) == ([], 0, 0)
    assert not (tmp_path / "none").exists()


def test_refresh_sees_files_created_and_deleted_by_others(tmp_path: Path) -> None:
    """A deleted file is no longer read, though its descriptor was open."""
    put(tmp_path, 0, b"first")
    files = MappedFileQueue(tmp_path, SIZE)
    assert files.read(0, 5) == b"first"
    put(tmp_path, 64, b"second")
    (tmp_path / file_name(0)).unlink()
    files.refresh()
    assert (files.starts, files.covers(0), files.covers(127)) == ([64], False, True)
    assert files.read(0, 5) == b""
    assert files.read(64, 6) == b"second"
    files.close()


def test_a_file_of_another_size_is_a_contradiction(tmp_path: Path) -> None:
    """The setting and the files must agree."""
    put(tmp_path, 0)
    put(tmp_path, 64, size=SIZE - 1)
    with pytest.raises(StoreContradictionError) as refused:
        MappedFileQueue(tmp_path, SIZE)
    assert refused.value.facts == {"path": str(tmp_path / file_name(64)), "size": SIZE - 1, "expected": SIZE}


@pytest.mark.parametrize("name", [".DS_Store", "0.tmp", "x", "123", "²" * 20, file_name(64) + ".bak", "-" + "1" * 19])
def test_a_foreign_file_is_refused(tmp_path: Path, name: str) -> None:
    """A broker would not load such a folder either; subfolders are ignored."""
    put(tmp_path, 0)
    (tmp_path / "some-folder").mkdir()
    MappedFileQueue(tmp_path, SIZE)
    (tmp_path / name).write_bytes(bytes(SIZE))
    with pytest.raises(CorruptStoreError) as refused:
        MappedFileQueue(tmp_path, SIZE)
    assert refused.value.facts["path"] == str(tmp_path / name)


def test_a_file_start_that_is_not_a_multiple_of_the_size_is_refused(tmp_path: Path) -> None:
    """Such a file cannot have the content that its name states."""
    put(tmp_path, 65)
    with pytest.raises(CorruptStoreError):
        MappedFileQueue(tmp_path, SIZE)


@pytest.mark.parametrize("may_write", [True, False])
def test_a_zero_length_last_file_is_ignored(tmp_path: Path, may_write: bool) -> None:
    """A crash during its creation left it: the owner deletes it, a reader skips it."""
    put(tmp_path, 0)
    put(tmp_path, 64, size=0)
    files = MappedFileQueue(tmp_path, SIZE, DiskStorage() if may_write else None)
    assert files.starts == [0]
    assert (tmp_path / file_name(64)).exists() != may_write
    if may_write:
        files.write(60, b"over the edge")
        assert files.starts == [0, 64]
    files.close()


def test_a_zero_length_file_before_the_last_is_refused(tmp_path: Path) -> None:
    """Only the last file can have been unfinished (docs/format.md §10)."""
    put(tmp_path, 0, size=0)
    put(tmp_path, 64)
    with pytest.raises(StoreContradictionError):
        MappedFileQueue(tmp_path, SIZE)


def test_covers_is_false_for_a_missing_file(tmp_path: Path) -> None:
    """A lost file does not hide its neighbours."""
    put(tmp_path, 0, b"a")
    put(tmp_path, 128, b"c")
    files = MappedFileQueue(tmp_path, SIZE)
    assert [files.covers(offset) for offset in (63, 64, 127, 128)] == [True, False, False, True]
    assert (files.read(0, 1), files.read(64, 1), files.read(128, 1)) == (b"a", b"", b"c")
    files.close()


def test_a_file_deleted_while_the_folder_is_listed_is_omitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention may delete between the listing and the stat."""

    class Gone:
        name = file_name(0)
        path = str(tmp_path / file_name(0))

        def is_dir(self) -> bool:
            return False

        def stat(self) -> os.stat_result:
            raise FileNotFoundError

    put(tmp_path, 64)
    files = MappedFileQueue(tmp_path, SIZE)
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: [Gone(), *scandir(folder)])
    files.refresh()
    assert files.starts == [64]


def test_zero_overwrites_existing_files_and_creates_none(tmp_path: Path) -> None:
    """Zeroing stops at the end of the files."""
    files = MappedFileQueue(tmp_path, SIZE, DiskStorage())
    files.write(0, b"x" * 128)
    files.zero(60, 1000)
    assert files.read(0, 64) == b"x" * 60 + bytes(4)
    assert files.read(64, 64) == bytes(64)
    assert files.starts == [0, 64]
    files.close()


def test_a_deleted_file_is_removed_from_folder_list_and_reads(tmp_path: Path) -> None:
    """It is gone from the folder, the list, and reads."""
    files = MappedFileQueue(tmp_path, SIZE, DiskStorage())
    files.write(0, b"x" * 128)
    files.delete_file(64)
    assert (files.starts, files.read(64, 1)) == ([0], b"")
    assert os.listdir(tmp_path) == [file_name(0)]
    files.close()
    assert files.read(0, 1) == b"x"
    files.close()


def test_size_on_disk_is_the_size_of_the_first_non_empty_file(tmp_path: Path) -> None:
    """The first non-empty file decides; without one there is no size."""
    assert size_on_disk(tmp_path / "none") is None
    put(tmp_path, 0, size=0)
    (tmp_path / "foreign").write_bytes(b"x")
    assert size_on_disk(tmp_path) is None
    put(tmp_path, 64, size=100)
    assert size_on_disk(tmp_path) == 100


def test_a_file_deleted_under_a_reader_is_read_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its descriptor number must not be reused before the reader has finished."""
    put(tmp_path, 0, b"first")
    put(tmp_path, 64, b"second")
    files = MappedFileQueue(tmp_path, SIZE, DiskStorage())
    files.read(0, 1)
    pread, others = os.pread, []

    def late_pread(descriptor: int, length: int, at: int) -> bytes:
        monkeypatch.undo()
        files.delete_file(0)
        others.append(os.open(tmp_path / file_name(64), os.O_RDONLY))  # takes the lowest free number
        return pread(descriptor, length, at)

    monkeypatch.setattr(os, "pread", late_pread)
    assert files.read(0, 5) == b"first"
    assert files.read(0, 5) == b""
    assert (files.starts, files.covers(0)) == ([64], False)
    os.close(others[0])
    files.close()


def test_a_file_deleted_while_it_is_opened_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its descriptor would stay open, and its disk space would not be freed."""
    put(tmp_path, 0, b"first")
    put(tmp_path, 64, b"second")
    storage = DiskStorage()
    files = MappedFileQueue(tmp_path, SIZE, storage)
    before = set(os.listdir("/proc/self/fd"))

    def late_open(path: Path) -> int:
        descriptor = os.open(path, os.O_RDWR)
        files.delete_file(0)
        return descriptor

    monkeypatch.setattr(storage, "open", late_open)
    files.read(0, 5)
    assert not files.covers(0)
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_file_that_cannot_be_deleted_stays_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader must still find it."""
    put(tmp_path, 0, b"first")
    storage = DiskStorage()
    files = MappedFileQueue(tmp_path, SIZE, storage)

    def refuse(path: Path) -> None:
        raise OSError(5, "injected")

    monkeypatch.setattr(storage, "unlink", refuse)
    with pytest.raises(OSError, match="injected"):
        files.delete_file(0)
    assert (files.starts, files.read(0, 5)) == ([0], b"first")
    files.close()


def test_a_queue_with_deferred_name_syncs_creates_its_first_file_without_a_sync(tmp_path: Path) -> None:
    """The same holds for its folders; before a second file is created, the first one is fully on the disk."""
    storage = RecordingStorage()
    files = MappedFileQueue(tmp_path / "topic" / "0", 100, storage, sync_names_later=True)
    files.write(0, b"x" * 50)
    assert storage.steps == ["create_unsynced", "pwrite"]
    assert files.has_unsynced_name
    files.write(50, b"x" * 60)
    assert storage.steps[2:] == ["pwrite", "fdatasync", "make_folder", "create", "pwrite"]
    files.has_unsynced_name = False
    files.write(110, b"x" * 100)
    assert storage.steps[7:] == ["pwrite", "make_folder", "create", "pwrite"]
    assert [path.stat().st_size for path in sorted((tmp_path / "topic" / "0").iterdir())] == [100, 100, 100]
    files.close()
