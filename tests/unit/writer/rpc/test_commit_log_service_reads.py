from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.writer.config import FlushMode
from tests.builders import wire_batch
from tests.unit.writer.opened_log import LONG_S
from tests.unit.writer.rpc.log_service import CONTEXT, FREE_BYTES, SEGMENT_SIZE, Service, run
from tidemark.errors import (
    ArgumentIllegalError,
    CorruptStoreError,
    OffsetOutOfRangeError,
    StoreClosedError,
    StoreError,
)
from tidemark.store.mapped_file_queue import file_name
from tidemark.v1 import commit_log_pb2 as pb


def test_read_returns_exactly_the_committed_bytes_across_files(tmp_path: Path) -> None:
    async def test(service: Service) -> None:
        for _ in range(5):
            end = (await service.append(packed=wire_batch((b"x" * 80_000, b"", 0)))).end_physical_offset
        files = sorted((tmp_path / "commitlog").iterdir())
        stored = b"".join(path.read_bytes() for path in files)[:end]
        assert end > SEGMENT_SIZE
        assert await service.read() == stored
        assert await service.read(100, max_bytes=270_000) == stored[100:270_100]
        assert await service.read(end - 5, max_bytes=1_000) == stored[end - 5 :]
        assert await service.read(end) == b""

    run(test, tmp_path)


@pytest.mark.parametrize(
    ("physical_offset", "max_bytes", "error"),
    [(1 << 20, 0, OffsetOutOfRangeError), (0, -1, ArgumentIllegalError)],
)
def test_bad_bounds_of_a_read_are_refused(
    tmp_path: Path, physical_offset: int, max_bytes: int, error: type[StoreError]
) -> None:
    async def test(service: Service) -> None:
        await service.append()
        with pytest.raises(error):
            await service.read(physical_offset, max_bytes=max_bytes)

    run(test, tmp_path)


def test_committed_bytes_that_are_missing_are_reported_as_damage(tmp_path: Path) -> None:
    async def test(service: Service) -> None:
        await service.append()
        (tmp_path / "commitlog" / file_name(0)).unlink()
        with pytest.raises(CorruptStoreError):
            await service.read()

    run(test, tmp_path)


def test_followed_read_continues_with_later_commits_until_the_service_closes(tmp_path: Path) -> None:
    async def test(service: Service) -> None:
        first = await service.append(queue_id=0)
        parts = service.rpc.ReadLog(pb.ReadLogRequest(follow=True), CONTEXT)
        assert len((await anext(parts)).data) == first.end_physical_offset
        following = asyncio.ensure_future(anext(parts))
        await asyncio.sleep(0)
        second = await service.append(queue_id=0)
        part = await asyncio.wait_for(following, LONG_S)
        assert part.physical_offset == second.physical_offset
        assert part.committed_offset == second.end_physical_offset == part.physical_offset + len(part.data)
        following = asyncio.ensure_future(anext(parts))
        await asyncio.sleep(0)
        service.rpc.close()
        with pytest.raises(StoreClosedError):
            await asyncio.wait_for(following, LONG_S)

    run(test, tmp_path)


def test_watch_has_the_present_offset_and_each_later_one_until_the_service_closes(tmp_path: Path) -> None:
    async def test(service: Service) -> None:
        watched = service.rpc.WatchCommitted(pb.WatchCommittedRequest(), CONTEXT)
        first = await anext(watched)
        assert (first.committed_offset, first.term) == (0, 1)
        moving = asyncio.ensure_future(anext(watched))
        await asyncio.sleep(0)
        end = (await service.append()).end_physical_offset
        assert (await asyncio.wait_for(moving, LONG_S)).committed_offset == end
        service.rpc.close()
        with pytest.raises(StoreClosedError):
            await asyncio.wait_for(anext(watched), LONG_S)

    run(test, tmp_path)


@pytest.mark.parametrize(
    ("mode", "shown"), [(FlushMode.SYNC, pb.FLUSH_MODE_SYNC), (FlushMode.ASYNC, pb.FLUSH_MODE_ASYNC)]
)
def test_log_info_has_the_bounds_and_limits_of_this_log(tmp_path: Path, mode: FlushMode, shown: int) -> None:
    async def test(service: Service) -> None:
        end = (await service.append()).end_physical_offset
        info = await service.info()
        assert (info.store_name, info.advertised_address, info.term) == ("store-7", "10.0.0.9:8081", 1)
        assert (info.min_physical_offset, info.committed_offset, info.max_physical_offset) == (0, end, end)
        assert (info.recovered_end_offset, info.segment_size_bytes, info.flush_mode) == (0, SEGMENT_SIZE, shown)
        assert (info.free_disk_bytes, info.max_properties_size_bytes) == (FREE_BYTES, 32_767)
        if mode is FlushMode.SYNC:
            assert info.flushed_offset == end

    run(test, tmp_path, flush_mode=mode)
