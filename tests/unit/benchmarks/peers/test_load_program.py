"""The load program of another system, replaced by a Python program."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from benchmarks.peers.peer import Load

SAYS_WHO_AND_WAITS = "import json, os; print(json.dumps({'pid': os.getpid()}), flush=True); input()"


def test_the_load_program_ends_with_its_with_block(tmp_path: Path) -> None:
    """A failed round leaves no client that would take CPU time from the next round."""
    with contextlib.suppress(KeyError), Load([sys.executable, "-c", SAYS_WHO_AND_WAITS], tmp_path / "errors") as load:
        pid = load.next_line()["pid"]
        raise KeyError
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
