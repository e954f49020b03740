"""Services with wrong settings: real processes, which end before they change anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
DOORS = {
    "writer": ["services.writer"],
    "pipeline": ["services.indexer", "pipeline"],
    "query": ["services.indexer", "query"],
    "attach": ["services.indexer", "attach"],
}


def start(service: str, root: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the service to its end."""
    own = {"TIDEMARK_STORE_ROOT": str(root), "TIDEMARK_STATE_ROOT": f"{root}-state"}
    return subprocess.run(
        [sys.executable, "-m", *DOORS[service]],
        env={**os.environ, **own, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("service", DOORS)
def test_an_unknown_variable_is_refused_in_one_line(tmp_path: Path, service: str) -> None:
    """The line has the most similar name; no file is created in the store."""
    root = tmp_path / "store"
    done = start(service, root, TIDEMARK_FLUSH_MOD="async", TIDEMARK_QUERY_URL="http://127.0.0.1:1")
    told = f"{service}: TIDEMARK_FLUSH_MOD: unknown setting; did you mean TIDEMARK_FLUSH_MODE?\n"
    assert (done.returncode, done.stderr) == (2, told)
    assert not root.exists()


@pytest.mark.parametrize("service", DOORS)
def test_an_invalid_log_level_is_refused(tmp_path: Path, service: str) -> None:
    """The error lists the allowed levels."""
    done = start(service, tmp_path / "store", TIDEMARK_LOG_LEVEL="loud")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{service}: TIDEMARK_LOG_LEVEL: ")
    assert "'debug', 'info', 'warning' or 'error'" in done.stderr


def test_all_invalid_settings_are_reported_together(tmp_path: Path) -> None:
    """Each has a line without a traceback or a value."""
    done = start("writer", tmp_path / "store", TIDEMARK_FLUSH_MODE="hunter2", TIDEMARK_STORE_NAM="x")
    assert done.returncode == 2
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == ["TIDEMARK_FLUSH_MODE", "TIDEMARK_STORE_NAM"]
    assert "hunter2" not in done.stderr
