"""The programs of the compared Python clients, with real servers and tiny sizes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from benchmarks.peers.python.environment import require
from benchmarks.peers.python.load import CONSUME, CONSUME_TABLE, Load
from benchmarks.peers.python.measure import measure
from benchmarks.peers.python.rows import ROWS, Row
from benchmarks.peers.python.systems import SYSTEMS, TIDEMARK, System
from benchmarks.peers.toolchain import ToolchainMissingError

pytestmark = [pytest.mark.integration, pytest.mark.slow]
MESSAGES = 300
QUICK = [row for row in ROWS if row.key == "python_latency_200"]  # sends, finishes and reads
# the first test of a client installs it and its server
EACH = [(row, system) for system in SYSTEMS for row in ROWS if system in row.systems]


def _measure(row: Row, system: System, folder: Path) -> None:
    messages = MESSAGES if row.workload in (CONSUME, CONSUME_TABLE) else 0
    load = Load(row.workload, warm_s=0.1, measured_s=0.2, messages=messages, rate=row.rate)
    figures = measure(system, row.key, folder, flush=row.flush, load=load)
    assert tuple(figure.key for figure in figures) == row.keys
    assert all(figure.value > 0 and system.durability(row.flush) in figure.note for figure in figures)


@pytest.mark.exhaustive
@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.key)
def test_the_program_returns_the_figures_of_a_row(row: Row, tmp_path: Path) -> None:
    """Tidemark's own client over remoting frames."""
    _measure(row, TIDEMARK, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("row", "system"), EACH, ids=lambda value: value.key if isinstance(value, Row) else value.name)
def test_every_client_returns_the_figures_of_its_rows(row: Row, system: System, tmp_path: Path) -> None:
    """A client or server that cannot be installed is skipped with the reason."""
    try:
        require(system)
    except ToolchainMissingError as error:
        pytest.skip(str(error))
    _measure(row, system, tmp_path)
    assert not _processes_of(tmp_path)


def _processes_of(folder: Path) -> list[str]:
    """Return the command lines that name *folder*, and kill their processes."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    found = [line for line in listed.splitlines() if str(folder) in line]
    for line in found:
        os.kill(int(line.split()[0]), signal.SIGKILL)
    return found
