"""DiskGuard: refuses appends while the disk is nearly full."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from services.writer.log.disk_guard import DiskGuard, free_bytes
from tidemark.errors import DiskFullError


def test_the_guard_refuses_below_the_limit_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It checks at most once a second, and accepts appends again when space is back."""
    now, free, looks = [0.0], [100], []

    def look(path: Path) -> int:
        looks.append(path)
        return free[0]

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    guard = DiskGuard(Path("/store"), 50, look=look)
    guard.require_room()
    free[0] = 49
    guard.require_room()
    now[0] = 1.0
    for _ in range(5):
        with pytest.raises(DiskFullError) as refused:
            guard.require_room()
    assert refused.value.facts == {"free_bytes": 49, "min_free_bytes": 50}
    free[0], now[0] = 50, 2.0
    guard.require_room()
    assert len(looks) == 3


def test_the_guard_checks_the_disk_immediately_after_a_failed_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is checked at once, not after a second."""
    free = [100]
    guard = DiskGuard(Path("/store"), 50, look=lambda path: free[0])
    guard.require_room()
    free[0] = 0
    guard.saw_full_disk()
    with pytest.raises(DiskFullError):
        guard.require_room()


def test_free_bytes_returns_the_free_space_of_the_disk(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0
