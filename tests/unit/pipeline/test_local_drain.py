"""Tasks as processes: their outcomes, and the state after one of them fails."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.unit.pipeline.drains import DRAINS


@pytest.mark.parametrize("name", [drain.__name__ for drain in DRAINS])
def test_a_local_drain_runs_in_processes(name: str) -> None:
    command = [sys.executable, "-m", "tests.unit.pipeline.drains", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
