"""An access file that tests write, and the lines of its audit log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.access_files import AccessFolder

Deeds = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def files(tmp_path: Path) -> AccessFolder:
    """Return a folder without principals."""
    folder = tmp_path / "access"
    folder.mkdir()
    return AccessFolder(folder)


@pytest.fixture
def settings(tmp_path: Path, files: AccessFolder) -> dict[str, Any]:
    """Return the settings of a service that uses the file and polls it continually."""
    return {
        "writer_remoting_listen": "127.0.0.1:0",
        "query_remoting_listen": "127.0.0.1:0",
        "access_file": files.path,
        "access_reload_ms": 10,
        "audit_file": tmp_path / "audit.log",
        "audit_repeat_ms": 100,
    }


@pytest.fixture
def deeds(tmp_path: Path) -> Deeds:
    """Return a function that returns the audit log's lines so far."""
    return lambda: [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
