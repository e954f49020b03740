"""The demo's steps on a small part of the flights."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.__main__ import run
from demo.flights import flights
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]


def test_the_demo_finds_the_flights_of_the_table(tmp_path: Path) -> None:
    """The steps append, index, query, pull, and compare: no difference, and a clean stop."""
    stack = LocalStack(tmp_path / "data")
    with stack:
        assert run(stack, flights().slice(0, 20_000)) == []
        statuses = stack.stop()
    assert statuses == {"query": 0, "pipeline": 0, "writer": 0}
