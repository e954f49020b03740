"""Fixtures of the writer's crash tests: the writer as a separate process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .process import WriterProcess


@pytest.fixture
def start_writer(tmp_path: Path) -> Iterator[Callable[..., WriterProcess]]:
    """Yield start_writer(NAME=value, ...), which runs `python -m services.writer` on tmp_path/store."""
    processes: list[WriterProcess] = []

    def start(**settings: object) -> WriterProcess:
        processes.append(WriterProcess(tmp_path / "store", **settings))
        return processes[-1].wait_until_started()

    yield start
    for process in processes:
        process.kill()
