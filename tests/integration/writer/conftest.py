"""Fixtures of the writer's integration tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness import RunningWriter


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunningWriter]:
    """Run a writer on an empty store, segments of 1 MiB, advertised address 192.168.7.65:10911."""
    with RunningWriter(tmp_path / "store") as running:
        yield running
