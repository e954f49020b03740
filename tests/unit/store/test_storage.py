"""Writes through the disk: atomic replacement of small files, full disks, failed syncs, mapped words."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.store.storage import DiskStorage, MappedWords, replace_file


def steps_of(folder: Path, *, before: bytes | None) -> list[str]:
    storage = RecordingStorage()
    folder.mkdir()
    if before is not None:
        (folder / "f").write_bytes(before)
    replace_file(storage, folder / "f", b"new")
    return storage.steps


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_replaced_file_is_old_or_new_after_a_kill_at_any_step(tmp_path: Path, before: bytes | None) -> None:
    """After a kill before any step the file has the old content or the new one; a second attempt succeeds."""
    count = len(steps_of(tmp_path / "count", before=before))
    for step in range(count):
        path = tmp_path / str(step) / "f"
        path.parent.mkdir()
        if before is not None:
            path.write_bytes(before)
        with pytest.raises(KilledHere):
            replace_file(RecordingStorage(die_before=step), path, b"new")
        content = path.read_bytes() if path.exists() else None
        assert content in (before, b"new")
        replace_file(DiskStorage(), path, b"newer")
        assert path.read_bytes() == b"newer"
        assert sorted(os.listdir(path.parent)) in (["f"], ["f", "f.bak"])


def test_new_content_is_synced_before_the_rename(tmp_path: Path) -> None:
    """A name never points at bytes that a power cut would lose."""
    steps = steps_of(tmp_path / "d", before=b"old")
    assert steps.count("create") == steps.count("pwrite") == steps.count("fdatasync") == steps.count("rename") == 2
    assert steps.index("rename") > len(steps) - 1 - steps[::-1].index("fdatasync")


def test_the_previous_content_is_kept_as_bak(tmp_path: Path) -> None:
    """The previous content is kept, unless that is switched off."""
    path = tmp_path / "f"
    for content in (b"1", b"2", b"3"):
        replace_file(DiskStorage(), path, content)
    assert (path.read_bytes(), (tmp_path / "f.bak").read_bytes()) == (b"3", b"2")
    replace_file(DiskStorage(), path, b"4", keep_previous=False)
    assert (path.read_bytes(), (tmp_path / "f.bak").read_bytes()) == (b"4", b"2")


@pytest.mark.parametrize("step", ["create", "pwrite"])
def test_a_full_disk_keeps_the_old_content(tmp_path: Path, step: str) -> None:
    """If there is no room for the new content, the old content and its backup stay."""
    path = tmp_path / "f"
    replace_file(DiskStorage(), path, b"older")
    replace_file(DiskStorage(), path, b"old")
    with pytest.raises(OSError, match="No space"):
        replace_file(RecordingStorage(full_at=step), path, b"new")
    assert (path.read_bytes(), (tmp_path / "f.bak").read_bytes()) == (b"old", b"older")


def fail(code: int) -> object:
    def call(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return call


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_raises_disk_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Writing and creating raise a specific error, and leave no partial file."""
    storage = DiskStorage()
    descriptor = storage.create(tmp_path / "a", 10)
    monkeypatch.setattr(os, "pwrite", fail(code))
    with pytest.raises(DiskFullError):
        storage.pwrite(descriptor, b"x", 0)
    monkeypatch.setattr(os, "ftruncate", fail(code))
    with pytest.raises(DiskFullError):
        storage.create(tmp_path / "b", 10)
    with pytest.raises(DiskFullError):
        storage.truncate(descriptor, 5)
    monkeypatch.undo()
    os.close(descriptor)
    assert os.listdir(tmp_path) == ["a"]


def test_other_disk_errors_do_not_raise_disk_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An I/O error is raised unchanged."""
    descriptor = DiskStorage().create(tmp_path / "a", 10)
    monkeypatch.setattr(os, "pwrite", fail(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        DiskStorage().pwrite(descriptor, b"x", 0)
    os.close(descriptor)


def test_a_failed_sync_raises_flush_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fdatasync and the fsync of a new file fail as FlushFailedError."""
    storage = DiskStorage()
    descriptor = storage.create(tmp_path / "a", 10)
    monkeypatch.setattr(os, "fdatasync", fail(errno.EIO))
    monkeypatch.setattr(os, "fsync", fail(errno.EIO))
    with pytest.raises(FlushFailedError):
        storage.fdatasync(descriptor)
    with pytest.raises(FlushFailedError):
        storage.create(tmp_path / "b", 10)
    os.close(descriptor)


def test_a_created_file_has_its_full_size_and_is_not_recreated(tmp_path: Path) -> None:
    """The file is full of zero bytes; an existing file is never changed."""
    os.close(DiskStorage().create(tmp_path / "a", 1000))
    assert (tmp_path / "a").read_bytes() == bytes(1000)
    with pytest.raises(FileExistsError):
        DiskStorage().create(tmp_path / "a", 10)


def test_folders_are_created_with_their_parents(tmp_path: Path) -> None:
    """A second call changes nothing."""
    for _ in range(2):
        DiskStorage().make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_mapped_words_are_allocated_and_keep_their_content(tmp_path: Path) -> None:
    """A file with a hole, as a broker leaves its checkpoint, keeps its bytes and gets its blocks."""
    path = tmp_path / "w"
    with path.open("wb") as file:
        file.write(b"\1" * 8)
        file.truncate(4096)
    words = DiskStorage().words(path, 4096)
    assert words.load(0) == 0x0101010101010101
    words.store(511, 7)
    words.flush()
    words.close()
    assert path.stat().st_blocks * 512 >= 4096
    assert path.read_bytes()[-8:] == (7).to_bytes(8, "little")


def test_mapped_words_are_visible_through_another_mapping(tmp_path: Path) -> None:
    """A reader's own mapping shows the owner's store at once; its address is 8 bytes per word."""
    words = DiskStorage().words(tmp_path / "w", 4096)
    reader = MappedWords(tmp_path / "w", 4096, writable=False)
    words.store(3, (1 << 64) - 1)
    assert reader.load(3) == (1 << 64) - 1
    first, second = words.address(0), words.address(2)
    assert first is not None
    assert second == first + 16
    with pytest.raises(TypeError):
        reader.store(0, 1)
    words.close()
    reader.close()
