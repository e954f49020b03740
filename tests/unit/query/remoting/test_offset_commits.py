from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from services.indexer.query.groups.consumer_groups import ConsumerGroups
from services.indexer.query.groups.consumer_offsets import ConsumerOffset
from services.indexer.query.remoting.offset_commits import OffsetCommits, offset_to_commit
from tests.unit.query.remoting.desk import commits_of
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import ServedApp
from tests.waiting import until_async
from tidemark.errors import ArgumentIllegalError, StoreLockedError

LONG_S = 1_000.0


def stored(service: ServedApp, queue_id: int = 0, topic: str = "orders") -> int | None:
    return service.state.offsets.get("g", topic, queue_id)


class SlowGroups:
    """Groups whose writes wait until the test opens the gate. started: offsets in the order in which writes began."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.started: list[int] = []
        self.written: list[int] = []
        self.failure: Exception | None = None

    async def set_for_clients(self, _group: str, offsets: Sequence[ConsumerOffset]) -> None:
        self.started += [one.offset for one in offsets]
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.written += [one.offset for one in offsets]


def over(groups: SlowGroups, interval_s: float = 0.001) -> OffsetCommits:
    return OffsetCommits(cast(ConsumerGroups, groups), interval_s=interval_s)


def test_a_commit_is_known_at_once_and_stored_later(service: ServedApp) -> None:
    async def run() -> None:
        commits = commits_of(service)
        commits.put(ConsumerOffset("g", "orders", 0, 3))
        assert (commits.get("g", "orders", 0), stored(service)) == (3, None)
        assert commits.get("g", "orders", 1) is None
        await until_async(lambda: stored(service) == 3)
        await until_async(lambda: commits.get("g", "orders", 0) is None)
        commits.put(ConsumerOffset("g", "orders", 0, 4))  # the next one is written as well
        await until_async(lambda: stored(service) == 4)

    service.run(run())


def test_the_last_of_several_commits_wins_even_if_it_goes_back(service: ServedApp) -> None:
    async def run() -> None:
        commits = commits_of(service, LONG_S)
        for offset in (3, 5, 2):
            commits.put(ConsumerOffset("g", "orders", 0, offset))
        assert commits.get("g", "orders", 0) == 2
        await commits.close()

    service.run(run())
    assert stored(service) == 2


def test_a_commit_that_is_answered_is_durable_and_replaces_a_pending_one(service: ServedApp) -> None:
    async def run() -> None:
        commits = commits_of(service, LONG_S)
        commits.put(ConsumerOffset("g", "orders", 0, 3))
        await commits.put_now(ConsumerOffset("g", "orders", 0, 5))
        assert (stored(service), commits.get("g", "orders", 0)) == (5, None)
        await commits.close()

    service.run(run())
    assert stored(service) == 5


def test_a_refused_commit_leaves_the_pending_one(service: ServedApp) -> None:
    async def run() -> None:
        commits = commits_of(service, LONG_S)
        commits.put(ConsumerOffset("g", "orders", 0, 3))
        with pytest.raises(ArgumentIllegalError):
            await commits.put_now(ConsumerOffset("g", "orders", 0, MESSAGES + 1))
        await commits.close()

    service.run(run())
    assert stored(service) == 3


@pytest.mark.parametrize("bad", [ConsumerOffset("g", "orders", 1, 9), ConsumerOffset("g", "orders", 7, 0)])
def test_a_refused_offset_does_not_prevent_those_of_other_queues(service: ServedApp, bad: ConsumerOffset) -> None:
    """One is above the end of its queue, the other one is of a queue that does not exist."""

    async def run() -> None:
        commits = commits_of(service, LONG_S)
        commits.put(ConsumerOffset("g", "orders", 0, 3))
        commits.put(bad)
        await commits.close()

    with capture_logs() as logs:
        service.run(run())
    assert (stored(service), stored(service, bad.queue_id)) == (3, None)
    assert [(line["event"], line["group"], line["topic"]) for line in logs] == [
        ("offset_commit_refused", "g", "orders")
    ]


def test_refused_commits_are_logged_at_most_once_a_minute(service: ServedApp) -> None:
    async def run() -> None:
        commits = commits_of(service, LONG_S)
        for topic in ("nothing", "nowhere"):
            commits.put(ConsumerOffset("g", topic, 0, 0))
        await commits.close()

    with capture_logs() as logs:
        service.run(run())
    assert [line["reason"] for line in logs] == ["TOPIC_NOT_FOUND"]


def test_an_answered_commit_follows_a_write_in_work_of_an_older_offset() -> None:
    async def run() -> list[int]:
        groups = SlowGroups()
        commits = over(groups)
        commits.put(ConsumerOffset("g", "orders", 0, 3))
        await until_async(lambda: len(groups.started) >= 1)
        answered = asyncio.create_task(commits.put_now(ConsumerOffset("g", "orders", 0, 5)))
        await asyncio.sleep(0.01)
        assert groups.started == [3]
        assert commits.get("g", "orders", 0) == 3
        groups.gate.set()
        await answered
        assert commits.get("g", "orders", 0) is None
        await commits.close()
        return groups.written

    assert asyncio.run(run()) == [3, 5]


def test_a_commit_during_an_answered_one_follows_it() -> None:
    async def run() -> list[int]:
        groups = SlowGroups()
        commits = over(groups)
        answered = asyncio.create_task(commits.put_now(ConsumerOffset("g", "orders", 0, 5)))
        await until_async(lambda: len(groups.started) >= 1)
        commits.put(ConsumerOffset("g", "orders", 0, 6))
        await asyncio.sleep(0.01)
        assert groups.started == [5]
        groups.gate.set()
        await answered
        await commits.close()
        return groups.written

    assert asyncio.run(run()) == [5, 6]


def test_a_close_writes_the_offsets_of_a_write_in_work() -> None:
    async def run() -> list[int]:
        groups = SlowGroups()
        commits = over(groups)
        commits.put(ConsumerOffset("g", "orders", 0, 3))
        commits.put(ConsumerOffset("g", "orders", 1, 4))
        await until_async(lambda: len(groups.started) >= 2)
        commits.put(ConsumerOffset("g", "orders", 0, 7))
        closing = asyncio.create_task(commits.close())
        await asyncio.sleep(0.01)
        groups.gate.set()
        await closing
        return groups.written

    assert asyncio.run(run()) == [7, 4]


def test_commits_go_on_after_a_fault() -> None:
    async def run() -> list[int]:
        groups = SlowGroups()
        groups.gate.set()
        groups.failure = OSError("no such disk")
        commits = over(groups)
        commits.put(ConsumerOffset("g", "orders", 0, 3))
        await until_async(lambda: len(groups.started) >= 1)
        groups.failure = None
        commits.put(ConsumerOffset("g", "orders", 0, 4))
        await until_async(lambda: bool(groups.written))
        await commits.close()
        return groups.written

    with capture_logs() as logs:
        assert asyncio.run(run()) == [4]
    assert [line["event"] for line in logs] == ["offset_commit_failed"]


def test_a_failure_of_the_store_is_not_tried_for_each_queue() -> None:
    async def run() -> list[int]:
        groups = SlowGroups()
        groups.gate.set()
        groups.failure = StoreLockedError("another process")
        commits = over(groups)
        for queue_id in range(3):
            commits.put(ConsumerOffset("g", "orders", queue_id, queue_id))
        await commits.close()
        return groups.started

    assert asyncio.run(run()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"group": "a@b"}, "consumerGroup"),
        ({"group": ""}, "consumerGroup"),
        ({"queue_id": -1}, "queueId"),
        ({"offset": -1}, "commitOffset"),
    ],
)
def test_an_offset_that_no_group_can_have_is_refused(changed: dict[str, Any], argument: str) -> None:
    with pytest.raises(ArgumentIllegalError) as raised:
        offset_to_commit(**{"group": "g", "topic": "orders", "queue_id": 0, "offset": 0, **changed})
    assert raised.value.facts["argument"] == argument
