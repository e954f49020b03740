"""Queues of one request that are read together: the outcome of each is that of its own look."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.indexer.query.config import QuerySettings
from services.indexer.query.pull.pulled import AnswerLimits, Pulled
from services.indexer.query.pull.queue_pull import QueuePull
from services.indexer.query.pull.read_together import ReadTogether
from services.indexer.query.schema.query_arguments import PullLimits
from services.indexer.query.state.service_state import ServiceState
from tests.built_store import BuiltStore
from tidemark.read.look import one_look
from tidemark.read.store_moment import StoreMoment
from tidemark.read.store_reader import StoreReader

QUEUES, EACH = 40, 6
EVERYTHING = [("orders", queue_id, 0) for queue_id in range(QUEUES)]


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store with many short queues, a batch queue, a light queue and an empty queue."""
    store = BuiltStore(tmp_path)
    store.topic("orders", queues=QUEUES + 1)
    store.topic("batches", batch=True)
    store.topic("%LMQ%light")
    for number in range(QUEUES * EACH):
        store.append("orders", b"%d" % number, queue_id=number % QUEUES)
    store.append_batch("batches", [(b"a", {}, 0), (b"b", {}, 0)])
    store.append("%LMQ%light", b"x", {"INNER_MULTI_DISPATCH": "%LMQ%light"})
    store.publish()
    return store


class Request:
    """One request for many queues."""

    def __init__(self, store: BuiltStore, queues: list[tuple[str, int, int]], **asked: Any) -> None:
        settings = QuerySettings(store_root=store.root)
        self.state = cast(ServiceState, SimpleNamespace(settings=settings, store=StoreReader(store.root)))
        self.limits = AnswerLimits.of(
            PullLimits(**asked), settings, whole_records=True, may_be_unchecked=True
        )._replace(max_messages=asked.get("max_messages", 1 << 20))
        self.pulls = [
            QueuePull(self.state, topic, queue_id, str(offset), self.limits) for topic, queue_id, offset in queues
        ]
        self.now = StoreMoment(self.state.store.watermark(), self.state.store.log_min, self.state.store.catalog())

    def together(self) -> list[Pulled | None]:
        with one_look():
            reads = ReadTogether(self.state, self.pulls, self.now, self.limits)
            return [reads.pulled(at, self.limits) for at in range(len(self.pulls))]

    def alone(self) -> list[Pulled]:
        return [pull.look(self.now) for pull in self.pulls]


def facts(pulled: Pulled) -> tuple[Any, ...]:
    result = pulled.result
    pieces = [*result.stored, *(part.records.stored_bytes() for part in result.parts)]
    stored = b"".join(cast(list[memoryview], pieces))
    return (
        stored, result.status, result.next_offset, result.bounds, result.message_count, result.stored_bytes,
        result.skipped, pulled.watermark, pulled.requested_offset, pulled.limits,
    )  # fmt: skip


def test_each_outcome_is_that_of_its_own_look(store: BuiltStore) -> None:
    found = Request(store, EVERYTHING).together()
    for one, alone in zip(found, Request(store, EVERYTHING).alone(), strict=True):
        assert one is not None
        assert facts(one)[:-3] == facts(alone)[:-3]
        assert facts(one)[-2:] == facts(alone)[-2:]


@pytest.mark.parametrize(
    "unusual",
    [("batches", 0, 0), ("%LMQ%light", 0, 0), ("orders", QUEUES, 0), ("orders", 3, EACH), ("orders", 3, 99),
     ("orders", QUEUES + 1, 0), ("nothing", 0, 0)],
    ids=["batch queue", "light queue", "empty", "at its end", "above its end", "no such queue", "no such topic"],
)  # fmt: skip
def test_an_unusual_queue_is_read_by_itself(store: BuiltStore, unusual: tuple[str, int, int]) -> None:
    found = Request(store, [*EVERYTHING[:2], unusual, EVERYTHING[2]]).together()
    assert [one is None for one in found] == [False, False, True, False]


@pytest.mark.parametrize("asked", [{"tag": ["A"]}, {"verify": "reader"}])
def test_records_with_a_filter_or_without_a_check_are_not_read_together(
    store: BuiltStore, asked: dict[str, Any]
) -> None:
    assert Request(store, EVERYTHING, **asked).together() == [None] * QUEUES


def test_one_queue_alone_is_not_read_together(store: BuiltStore) -> None:
    assert Request(store, EVERYTHING[:1]).together() == [None]
