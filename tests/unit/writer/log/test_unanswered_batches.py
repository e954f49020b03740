from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from services.writer.batch.batch import Batch
from services.writer.log.unanswered_batches import UnansweredBatches
from tests.unit.writer.batches import batch_of
from tidemark.errors import FlushFailedError, InFlightLimitError

BODY = b"x" * 1000


def on_a_loop(test: Callable[[], Any]) -> None:
    async def run() -> None:
        result = test()
        if asyncio.iscoroutine(result):
            await result

    asyncio.run(run())


def noted(answers: list[Batch], *, written: bool = True) -> Batch:
    """Return a batch that is added to *answers* when it is answered."""
    batch = batch_of(BODY, answer=answers.append)
    batch.written_ns = 1 if written else 0
    return batch


def test_bytes_in_flight_are_bounded_and_freed_by_answers() -> None:
    def test() -> None:
        answers: list[Batch] = []
        first, second = noted(answers), noted(answers)
        outstanding = UnansweredBatches(limit_bytes=first.size, retry_after_ms=50, timeout_s=None)
        outstanding.add(first)
        with pytest.raises(InFlightLimitError) as refused:
            outstanding.add(second)
        assert refused.value.facts == {"limit_bytes": first.size, "retry_after_ms": 50}
        outstanding.complete([first])
        assert outstanding.bytes == 0
        outstanding.add(second)
        assert answers == [first]

    on_a_loop(test)


def test_one_batch_above_the_limit_is_accepted_alone() -> None:
    def test() -> None:
        answers: list[Batch] = []
        outstanding = UnansweredBatches(limit_bytes=1, retry_after_ms=50, timeout_s=None)
        outstanding.add(noted(answers))
        assert outstanding.bytes > 1

    on_a_loop(test)


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "not written"])
def test_only_a_written_batch_is_answered_at_its_timeout(is_written: bool) -> None:
    async def test() -> None:
        answers: list[Batch] = []
        batch = noted(answers, written=is_written)
        outstanding = UnansweredBatches(limit_bytes=1 << 20, retry_after_ms=50, timeout_s=0.01)
        outstanding.add(batch)
        await asyncio.sleep(0.3)
        assert (answers, batch.is_late) == (([batch], True) if is_written else ([], False))
        assert outstanding.bytes == batch.size, "its bytes are in flight until its flush"
        outstanding.complete([batch])
        assert (answers, outstanding.bytes) == ([batch], 0)
        outstanding.close()

    on_a_loop(test)


def test_a_batch_that_is_written_after_its_timeout_is_answered_late() -> None:
    async def test() -> None:
        answered = asyncio.Event()
        batch = batch_of(BODY, answer=lambda _: answered.set())
        outstanding = UnansweredBatches(limit_bytes=1 << 20, retry_after_ms=50, timeout_s=0.01)
        outstanding.add(batch)
        await asyncio.sleep(0.05)
        assert not answered.is_set()
        batch.written_ns = 1
        await asyncio.wait_for(answered.wait(), 30)
        assert batch.is_late
        outstanding.close()

    on_a_loop(test)


def test_a_failure_answers_every_pending_batch_exactly_once() -> None:
    def test() -> None:
        answers: list[Batch] = []
        batches = [noted(answers) for _ in range(3)]
        outstanding = UnansweredBatches(limit_bytes=1 << 20, retry_after_ms=50, timeout_s=None)
        for batch in batches:
            outstanding.add(batch)
        outstanding.complete(batches[:1])
        failure = FlushFailedError("the disk")
        outstanding.fail(failure)
        assert answers == batches
        assert [batch.error for batch in batches] == [None, failure, failure]

    on_a_loop(test)
