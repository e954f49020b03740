from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from services.writer.batch.batch import Batch
from services.writer.config import FlushMode
from services.writer.log.flusher import WrittenGroup
from services.writer.log.inbox import Task
from services.writer.log.queue_offsets import load_snapshot
from tests.unit.writer.batches import batch_of
from tests.unit.writer.opened_log import LONG_S, OpenedLog, SyncGate, opened_log
from tidemark.errors import (
    FlushFailedError,
    InFlightLimitError,
    RequestConflictError,
    StoreClosedError,
)

THREAD_APPENDS, LOOP_APPENDS = 1 << 16, 1 << 22  # file sizes: the event loop appends only where a megabyte is left


def place(batch: Batch) -> tuple[int, int]:
    """Return the first queue offset and the count of an appended batch."""
    assert batch.appended is not None, batch.error
    return batch.appended.queue_offset, batch.appended.message_count


def end_of(batch: Batch) -> int:
    assert batch.appended is not None, batch.error
    return batch.appended.end_offset


@pytest.mark.parametrize("segment_size", [THREAD_APPENDS, LOOP_APPENDS])
def test_an_answer_in_sync_mode_comes_after_flush_and_commit(tmp_path: Path, segment_size: int) -> None:
    async def run() -> None:
        async with opened_log(tmp_path, commit_log_segment_size_bytes=segment_size) as opened:
            seen: list[tuple[int, int, int]] = []
            answered = asyncio.Event()

            def answer(batch: Batch) -> None:
                seen.append((end_of(batch), opened.log.flushed_offset, opened.store.checkpoint.committed_offset))
                answered.set()

            opened.log.submit(batch_of(b"a", answer=answer))
            await asyncio.wait_for(answered.wait(), LONG_S)
            end, flushed, committed = seen[0]
            assert end <= flushed
            assert end <= committed

    asyncio.run(run())


@pytest.mark.parametrize("segment_size", [THREAD_APPENDS, LOOP_APPENDS])
def test_batches_are_appended_in_the_order_of_their_submission(tmp_path: Path, segment_size: int) -> None:
    """Also when some are too much for the event loop and go to the appender's thread."""

    async def run() -> None:
        async with opened_log(tmp_path, commit_log_segment_size_bytes=segment_size) as opened:
            first = await opened.append(*(batch_of(b"x" * size) for size in (1, 30_000, 40_000, 1)))
            second = await opened.append(batch_of(b"y", b"z"), batch_of(b"y"))
            assert [place(batch) for batch in first + second] == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 2), (6, 1)]

    asyncio.run(run())


def test_a_lone_batch_is_appended_at_once_and_several_of_a_turn_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a turn of the event loop with several batches, the first one of the next turn waits for the others."""

    async def run() -> None:
        async with opened_log(tmp_path, commit_log_segment_size_bytes=LOOP_APPENDS) as opened:
            await opened.append(batch_of(b"x"))  # by the thread, which creates the file
            groups: list[list[Batch | Task]] = []
            appender, append = opened.log._appender, opened.log._appender.append

            def recording(items: list[Batch | Task]) -> WrittenGroup:
                groups.append(items)
                return append(items)

            monkeypatch.setattr(appender, "append", recording)
            turns = [[batch_of(b"%d" % number) for number in range(count)] for count in (1, 3, 2, 1, 1)]
            for turn in turns:
                for batch in turn:
                    opened.log.submit(batch)
                assert (turn[0].appended is not None) == (turn is not turns[2] and turn is not turns[3])
                await asyncio.sleep(0.01)
            assert [len(group) for group in groups] == [1, 1, 2, 2, 1, 1]

    asyncio.run(run())


def test_a_batch_that_does_not_wait_is_answered_before_its_sync(tmp_path: Path) -> None:
    async def run() -> None:
        disk = SyncGate()
        async with opened_log(tmp_path, disk) as opened:
            disk.is_open.clear()
            waits = opened.submit(batch_of(b"a"))
            written = (await opened.append(batch_of(b"b", waits_for_flush=False)))[0]
            assert not waits.done()
            assert opened.log.committed.offset < end_of(written), "it is not committed by its answer"
            disk.is_open.set()
            await asyncio.wait_for(waits, LONG_S)

    asyncio.run(run())


def test_async_mode_commits_and_answers_before_the_sync(tmp_path: Path) -> None:
    async def run() -> None:
        disk = SyncGate()
        async with opened_log(tmp_path, disk, flush_mode=FlushMode.ASYNC) as opened:
            disk.is_open.clear()
            (batch,) = await opened.append(batch_of(b"a"))
            assert opened.log.committed.offset == opened.store.checkpoint.committed_offset == end_of(batch)
            assert opened.log.flushed_offset < end_of(batch)
            disk.is_open.set()
            await opened.log.close()
            assert opened.log.flushed_offset == end_of(batch)

    asyncio.run(run())


def test_a_failed_sync_fails_every_pending_and_later_append(tmp_path: Path) -> None:
    async def run() -> None:
        disk = SyncGate()
        async with opened_log(tmp_path, disk) as opened:
            watching: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            opened.log.watch(watching)
            disk.fails = True
            (batch,) = await opened.append(batch_of(b"a"))
            assert isinstance(batch.error, FlushFailedError)
            assert opened.failed.is_set()
            with pytest.raises(FlushFailedError):
                await watching
            with pytest.raises(FlushFailedError):
                opened.log.submit(batch_of(b"b"))
            assert opened.log.committed.offset == 0

    asyncio.run(run())


def test_a_repeat_is_answered_with_the_offset_of_its_original(tmp_path: Path) -> None:
    """The original is in the log, or arrives in the same group."""

    async def run() -> None:
        async with opened_log(tmp_path) as opened:
            first, repeat, behind = await opened.append(
                batch_of(b"a", key="k"), batch_of(b"a", key="k"), batch_of(b"b")
            )
            (late,) = await opened.append(batch_of(b"a", key="k"))
            for batch in (repeat, late):
                assert batch.appended is not None
                assert batch.appended.duplicate
                assert (place(batch), end_of(batch)) == (place(first), end_of(first))
            assert place(behind) == (1, 1)

    asyncio.run(run())


def test_a_refused_batch_does_not_affect_its_neighbours(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_log(tmp_path) as opened:
            first, conflict, second = await opened.append(
                batch_of(b"a", key="k"), batch_of(b"other", key="k"), batch_of(b"b")
            )
            assert isinstance(conflict.error, RequestConflictError)
            assert (place(first), place(second)) == ((0, 1), (1, 1))

    asyncio.run(run())


def test_a_task_runs_after_every_batch_submitted_before_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_log(tmp_path) as opened:
            ends: list[int] = []
            ran = threading.Event()
            before = [opened.submit(batch_of(b"a")) for _ in range(5)]

            def task() -> None:
                ends.append(opened.log.end_offset)
                ran.set()

            opened.log.between(task)
            after = opened.submit(batch_of(b"a"))
            assert await asyncio.to_thread(ran.wait, LONG_S)
            last = (await asyncio.gather(*before))[-1]
            assert ends[0] == end_of(last) < end_of(await after)

    asyncio.run(run())


def test_batches_above_the_limit_in_flight_are_refused_until_others_are_answered(tmp_path: Path) -> None:
    async def run() -> None:
        disk = SyncGate()
        limits = {"max_in_flight_bytes": 4096, "max_message_size_bytes": 4096}
        async with opened_log(tmp_path, disk, **limits) as opened:
            disk.is_open.clear()
            first = opened.submit(batch_of(b"x" * 3000))
            with pytest.raises(InFlightLimitError):
                opened.submit(batch_of(b"x" * 3000))
            disk.is_open.set()
            await asyncio.wait_for(first, LONG_S)
            assert place((await opened.append(batch_of(b"x" * 3000)))[0]) == (1, 1)

    asyncio.run(run())


def test_close_answers_accepted_batches_and_refuses_later_ones(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_log(tmp_path) as opened:
            accepted = [opened.submit(batch_of(b"a")) for _ in range(5)]
            await opened.log.close()
            assert [place(answer.result()) for answer in accepted] == [(number, 1) for number in range(5)]
            with pytest.raises(StoreClosedError):
                opened.log.submit(batch_of(b"b"))

    asyncio.run(run())


def test_queue_offsets_and_duplicate_detection_continue_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async def begin(opened: OpenedLog) -> Batch:
            return (await opened.append(batch_of(b"a", b"b", key="k")))[0]

        async with opened_log(tmp_path) as opened:
            first = await begin(opened)
        async with opened_log(tmp_path) as opened:
            assert opened.log.committed.offset == end_of(first)
            assert (repeat := await begin(opened)).appended is not None
            assert repeat.appended.duplicate
            assert place((await opened.append(batch_of(b"c")))[0]) == (2, 1)

    asyncio.run(run())


def test_a_start_reads_only_the_end_of_the_last_file(tmp_path: Path) -> None:
    """The writer has saved where records begin; a snapshot is also saved while it runs, for a start after a kill."""
    settings: dict[str, Any] = {"commit_log_segment_size_bytes": 16 << 20, "idempotence_rebuild_bytes": 1 << 20}
    body = b"x" * 100_000

    async def run() -> None:
        async with opened_log(tmp_path, **settings) as opened:
            for _ in range(60):
                await opened.append(batch_of(body))
        async with opened_log(tmp_path, **settings) as opened:
            recovered = opened.store.recovered
            assert 1 << 20 <= recovered.end - recovered.scanned_from < 3 << 20
            assert recovered.offsets.next(batch_of(body).key) == 60
            assert not recovered.damages
            for _ in range(170):  # a file's size, after which the queue offsets are saved
                await opened.append(batch_of(body))
            await asyncio.to_thread(wait_for_snapshot, opened.store.snapshot_path, recovered.end + (15 << 20))

    asyncio.run(run())


def wait_for_snapshot(path: Path, least: int) -> None:
    """Return once the saved queue offsets are of a position of at least *least*."""
    end = time.monotonic() + LONG_S
    while (saved := load_snapshot(path)) is None or saved.position < least:
        assert time.monotonic() < end, "the queue offsets are not saved"
        time.sleep(0.01)
