from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.writer.log.log_tails import Tail


@pytest.fixture
def tail(tmp_path: Path) -> Iterator[Tail]:
    made = Tail(tmp_path)
    yield made
    made.pages.close()
    made.journal.close()
    made.log.close()
