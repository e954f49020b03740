"""Measured starts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.rows.start import start_to_serving
from tidemark.local.local_stack import ServiceDiedError

pytestmark = pytest.mark.integration


def test_a_failed_start_is_reported_immediately(tmp_path: Path) -> None:
    """Clients that wait for its first messages stop too, not after minutes."""
    log = tmp_path / "commitlog"
    log.mkdir()
    (log / "no file of a log").touch()
    began = time.monotonic()
    with pytest.raises(ServiceDiedError, match="writer"):
        start_to_serving(tmp_path, "bench")
    assert time.monotonic() - began < 60
