"""A folder in memory, and services without console output."""

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
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for the test, in memory if the system allows it; services write nothing to the console."""
    monkeypatch.setattr("services.writer.log.batch_journal.ENTRIES", _JOURNAL_ENTRIES)
    monkeypatch.setattr("tidemark.store.batch_journal.ENTRIES", _JOURNAL_ENTRIES)
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tidemark-crash-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name) / "crash"
    structlog.configure(**before)
