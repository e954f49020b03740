from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.indexer.query.config import QuerySettings
from services.indexer.query.pull.pulled import AnswerLimits, Pulled
from services.indexer.query.schema.query_arguments import PullLimits
from tests.built_store import BuiltStore
from tidemark.read.pull import PullResult, PullStatus
from tidemark.read.store_reader import StoreReader

SETTINGS = QuerySettings(
    query_default_messages=10,
    query_max_messages=100,
    query_default_bytes=1_000,
    query_max_bytes=10_000,
    query_max_wait_ms=500,
)


def limits(**asked: Any) -> AnswerLimits:
    return AnswerLimits.of(PullLimits(**asked), SETTINGS, whole_records=False)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, (10, 1_000, 0)),
        ({"max_messages": 7, "max_bytes": 20, "wait_ms": 30}, (7, 20, 30)),
        ({"max_messages": 101, "max_bytes": 10_001, "wait_ms": 501}, (100, 10_000, 500)),
    ],
)
def test_requested_limits_are_capped_by_the_settings(asked: dict[str, int], expected: tuple[int, int, int]) -> None:
    assert limits(**asked)[:3] == expected


@pytest.mark.parametrize(("tag", "is_filtered"), [([], False), (["*"], False), (["A"], True), (["A||B", "C"], True)])
def test_a_pull_filters_only_if_tags_are_named(tag: list[str], is_filtered: bool) -> None:
    assert (limits(tag=tag).tags is not None) is is_filtered


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (PullStatus.FOUND, False),
        (PullStatus.OFFSET_TOO_SMALL, False),
        (PullStatus.OFFSET_OVERFLOW_BADLY, False),
        (PullStatus.NO_MATCHED_MESSAGE, True),
        (PullStatus.OFFSET_OVERFLOW_ONE, True),
        (PullStatus.NO_MESSAGE_IN_QUEUE, True),
    ],
)
def test_a_pull_waits_only_at_a_valid_offset(tmp_path: Path, status: PullStatus, expected: bool) -> None:
    """An offset that the queue does not have is refused at once."""
    built = BuiltStore(tmp_path)
    built.topic("orders")
    store = StoreReader(tmp_path)
    watermark = store.watermark()
    result = PullResult(status, 0, store.bounds(store.queue("orders", 0), watermark))
    assert Pulled(watermark, result, 0, limits()).is_worth_waiting is expected
