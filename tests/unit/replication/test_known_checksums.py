from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.replication.known_checksums import STEP_BYTES, KnownChecksums


def test_a_checksum_is_known_once_it_was_noted(tmp_path: Path) -> None:
    known = KnownChecksums(tmp_path)
    assert known.of(0, STEP_BYTES) is None
    known.note(7 * STEP_BYTES, 8 * STEP_BYTES, 0)
    known.close()
    known = KnownChecksums(tmp_path)
    assert known.of(7 * STEP_BYTES, 8 * STEP_BYTES) == 0
    assert known.of(6 * STEP_BYTES, 7 * STEP_BYTES) is None, "zeros are no checksum"
    known.close()


@pytest.mark.parametrize(("begin", "end"), [(1, STEP_BYTES + 1), (0, STEP_BYTES - 1), (0, 2 * STEP_BYTES)])
def test_only_whole_steps_are_noted(tmp_path: Path, begin: int, end: int) -> None:
    known = KnownChecksums(tmp_path)
    known.note(begin, end, 5)
    assert known.of(begin, end) is None
    assert (tmp_path / "checksums").stat().st_size == 0
    known.close()


def test_a_damaged_entry_is_unknown(tmp_path: Path) -> None:
    known = KnownChecksums(tmp_path)
    known.note(0, STEP_BYTES, 5)
    data = bytearray((tmp_path / "checksums").read_bytes())
    data[2] ^= 1
    (tmp_path / "checksums").write_bytes(data)
    assert known.of(0, STEP_BYTES) is None
    known.close()
