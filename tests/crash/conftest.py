"""A folder in memory, quiet services, and a place to say what the exhaustive suites looked at."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

_MEMORY = Path("/dev/shm")
_JOURNAL_ENTRIES = 256  # of 32 bytes: two pages; the real size only makes each state two megabytes longer
_lines: list[str] = []


@pytest.fixture
def tell() -> Callable[[str], None]:
    """One line for the end of the run: seeds and counts."""
    return _lines.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _lines:
        terminalreporter.section("crash states")
        for line in _lines:
            terminalreporter.line(line)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of this test's own, in memory where the system has such; services write nothing to the console."""
    monkeypatch.setattr("services.writer.journal.ENTRIES", _JOURNAL_ENTRIES)
    monkeypatch.setattr("tidemark.store.batch_journal.ENTRIES", _JOURNAL_ENTRIES)
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tidemark-crash-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name) / "crash"
    structlog.configure(**before)
