from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.writer.replication import log_repair
from services.writer.replication.log_repair import LogRepair
from tidemark.index.ledger import Ledger
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


class SameLogs:
    """The log of this member and those of others, which have the same bytes. looks: at places to repair."""

    committed = 1_000
    names = ("b",)

    def __init__(self) -> None:
        self.looks = 0

    def end_of_file(self, offset: int) -> int:
        return 1 << 20

    async def record_start(self, offset: int) -> int:
        self.looks += 1
        return 0

    async def read(self, begin: int, end: int) -> bytes:
        return bytes(end - begin)

    async def fetch(self, name: str, begin: int, end: int) -> bytes:
        return bytes(end - begin)


def test_damage_that_no_member_can_repair_is_not_looked_at_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look reads up to a file of the log, and asks the other members."""
    monkeypatch.setattr(log_repair, "_LOOK_S", 0.01)
    paths, storage = StorePaths(tmp_path), DiskStorage()
    for folder in (paths.replication, paths.indexer):
        storage.make_folder(folder)
    Ledger(paths.indexer, 0, storage).record(physical_offset=0, size=100, reason="QUEUE_OFFSET")
    settings: Any = SimpleNamespace(compare_interval_s=0, compare_max_bytes_per_s=1)
    logs: Any = SameLogs()
    unused: Any = None

    async def repair() -> None:
        made = LogRepair(settings, paths, storage, unused, logs, logs, unused)
        made.start(lambda _: None)
        await asyncio.sleep(0.3)
        await made.stop()

    asyncio.run(repair())
    assert logs.looks == 1
