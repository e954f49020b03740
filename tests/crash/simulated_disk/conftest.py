"""States lie in memory where the system has a folder there, and nobody reads the services' events."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

_MEMORY = Path("/dev/shm")
_JOURNAL_ENTRIES = 256  # of 32 bytes: two pages; the real size only makes each state two megabytes longer


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of this test's own."""
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tidemark-crash-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name) / "crash"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("services.writer.journal.ENTRIES", _JOURNAL_ENTRIES)
    monkeypatch.setattr("tidemark.store.batch_journal.ENTRIES", _JOURNAL_ENTRIES)
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)
