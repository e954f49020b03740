from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.writer.log.log_tails import Tail
from tests.unit.writer.replication.replicas import Replica


@pytest.fixture
def tail(tmp_path: Path) -> Iterator[Tail]:
    """Return the end of a writer's log."""
    (tmp_path / "writer").mkdir()
    made = Tail(tmp_path / "writer")
    yield made
    made.pages.close()
    made.journal.close()
    made.log.close()


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path / "replica")
    yield made
    made.close()
