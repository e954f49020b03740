from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.errors import CorruptStoreError
from tidemark.replication.epochs import Epoch
from tidemark.replication.member_files import MemberFiles
from tidemark.store.storage import DiskStorage

OLD, NEW = (Epoch(1, 0),), (Epoch(1, 0), Epoch(5, 305_880))


def files(folder: Path) -> MemberFiles:
    return MemberFiles(folder / "replication", DiskStorage())


def test_a_new_member_has_an_identity_and_nothing_else(tmp_path: Path) -> None:
    first, other = files(tmp_path / "a"), files(tmp_path / "b")
    assert first.identity() == first.identity() == files(tmp_path / "a").identity()
    assert len(bytes.fromhex(first.identity())) == 16
    assert first.identity() != other.identity()
    assert (first.promised(), first.epochs()) == (0, ())


def test_what_is_saved_is_there_after_a_restart(tmp_path: Path) -> None:
    files(tmp_path).promise(7)
    files(tmp_path).save_epochs(NEW)
    assert (files(tmp_path).promised(), files(tmp_path).epochs()) == (7, NEW)
    files(tmp_path).save_epochs(OLD)
    assert files(tmp_path).epochs() == OLD


Read = Callable[[MemberFiles], object]
READS: dict[str, Read] = {
    "identity": MemberFiles.identity,
    "promised": MemberFiles.promised,
    "epochs": MemberFiles.epochs,
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("damage", [b"", b"\0" * 20, None], ids=["empty", "zeros", "missing"])
def test_a_damaged_file_is_read_from_its_copy_and_healed(tmp_path: Path, name: str, damage: bytes | None) -> None:
    saved = files(tmp_path)
    saved.identity()
    saved.promise(7)
    saved.save_epochs(NEW)
    path = tmp_path / "replication" / name
    expected, content = READS[name](saved), path.read_bytes()
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert READS[name](files(tmp_path)) == expected
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", READS)
def test_damage_of_file_and_copy_is_an_error_and_no_guess(tmp_path: Path, name: str) -> None:
    saved = files(tmp_path)
    saved.identity()
    saved.promise(7)
    saved.save_epochs(NEW)
    for path in (tmp_path / "replication").glob(f"{name}*"):
        os.truncate(path, 3)
    with pytest.raises(CorruptStoreError, match=name):
        READS[name](files(tmp_path))


@pytest.mark.parametrize("name", READS)
def test_a_damaged_file_without_a_copy_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "replication").mkdir()
    (tmp_path / "replication" / name).write_bytes(b"?")
    with pytest.raises(CorruptStoreError, match="seed the member again"):
        READS[name](files(tmp_path))
