"""The table of next queue offsets, and its snapshot."""

from __future__ import annotations

from pathlib import Path

from services.writer.batch.batch import QueueKey
from services.writer.log.queue_offsets import (
    QueueOffsets,
    Snapshot,
    load_snapshot,
    save_snapshot,
)
from tidemark.store.storage import DiskStorage

STORAGE = DiskStorage()
A0, A1, B0 = QueueKey("a", 0), QueueKey("a", 1), QueueKey("b%|-_", 0)


def table(**offsets: int) -> QueueOffsets:
    made = QueueOffsets()
    for name, offset in offsets.items():
        made.set({"a0": A0, "a1": A1, "b0": B0}[name], offset)
    return made


def test_an_unknown_queue_starts_at_zero() -> None:
    """No message was ever appended to it."""
    assert QueueOffsets().next(A0) == 0


def test_raise_to_never_lowers_an_offset() -> None:
    """The greater number wins."""
    offsets = table(a0=5)
    offsets.raise_to(A0, 3)
    offsets.raise_to(A1, 7)
    assert offsets == table(a0=5, a1=7)


def test_a_copy_of_the_offsets_is_independent() -> None:
    """The appender continues while the copy is saved."""
    offsets = table(a0=5)
    copy = offsets.copy()
    offsets.set(A0, 6)
    assert copy == table(a0=5)
    assert offsets.of_topic("a") == {0: 6}


def test_a_saved_snapshot_is_loaded_unchanged(tmp_path: Path) -> None:
    """Position, time and every number are restored."""
    snapshot = Snapshot(123, 456, table(a0=1, a1=2, b0=1 << 40))
    save_snapshot(tmp_path / "queue_offsets", snapshot, STORAGE)
    assert load_snapshot(tmp_path / "queue_offsets") == snapshot


def test_missing_or_broken_snapshot_falls_back_to_its_copy(tmp_path: Path) -> None:
    """Without a sound copy it falls back to the previous snapshot, and then to none: recovery scans the log."""
    path = tmp_path / "queue_offsets"
    assert load_snapshot(path) is None
    first, second = Snapshot(1, 1, table(a0=1)), Snapshot(2, 2, table(a0=2))
    save_snapshot(path, first, STORAGE)
    save_snapshot(path, second, STORAGE)
    for broken in (b"", b"{", b"[]", b'{"version":2}', b'{"version":1,"position":1}', b"\xff"):
        path.write_bytes(broken)
        assert load_snapshot(path) == second
    path.unlink()
    assert load_snapshot(path) == second
    (tmp_path / "queue_offsets.copy").unlink()
    assert load_snapshot(path) == first
    (tmp_path / "queue_offsets.bak").write_bytes(b"?")
    assert load_snapshot(path) is None
