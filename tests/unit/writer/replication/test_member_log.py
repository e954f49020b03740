from __future__ import annotations

import asyncio
from pathlib import Path

from services.writer.replication.member_log import MemberLog
from tests.open_files import open_files
from tests.unit.writer.log.log_tails import FILE_SIZE, Tail
from tests.unit.writer.replication.replicas import written
from tidemark.store.mapped_file_queue import MappedFileQueue


def test_no_file_stays_open(tail: Tail) -> None:
    """Members compare their whole logs once a day; until the next time, deleted files would keep their disk space."""
    written(tail, 9_000, 9_000)
    end = tail.tail.position
    folder = Path(tail.log.folder)
    before = open_files(folder)
    log = MemberLog(MappedFileQueue(folder, FILE_SIZE), lambda: end)

    async def compare() -> None:
        assert len(await log.checksums(0, end, 4_096)) == -(-end // 4_096)
        assert len(await log.read(0, end)) == end
        assert await log.record_start(end - 1) > 0

    asyncio.run(compare())
    assert open_files(folder) == before
    log.close()
