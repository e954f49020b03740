from __future__ import annotations

import asyncio

from services.writer.log.committed_offset import Committed

LONG_S = 20.0


async def waiting(committed: Committed) -> asyncio.Task[None]:
    """Return a task that already waits."""
    task = asyncio.create_task(committed.wait())
    await asyncio.sleep(0)
    return task


def test_an_advance_wakes_every_waiter_and_later_waits_block_again() -> None:
    async def run() -> None:
        committed = Committed(100)
        tasks = [await waiting(committed) for _ in range(3)]
        committed.move(200)
        await asyncio.wait_for(asyncio.gather(*tasks), LONG_S)
        later = await waiting(committed)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not later.done()
        committed.wake()
        await asyncio.wait_for(later, LONG_S)
        assert committed.offset == 200

    asyncio.run(run())


def test_the_committed_offset_never_decreases_and_an_unchanged_one_wakes_no_waiter() -> None:
    async def run() -> None:
        committed = Committed(100)
        task = await waiting(committed)
        for offset in (100, 50):
            committed.move(offset)
        for _ in range(5):
            await asyncio.sleep(0)
        assert (committed.offset, task.done()) == (100, False)
        task.cancel()

    asyncio.run(run())
