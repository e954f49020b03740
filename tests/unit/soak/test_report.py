"""The report of a soak: counts, waits, and the verdict."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.soak.__main__ import main
from tests.soak.facts import Facts
from tests.soak.history import Fault, HistoryFile, Operation
from tests.soak.report import report
from tests.soak.run import HISTORY
from tests.unit.soak.simulated import Simulated, spoiled


def keep(history: list[Operation], folder: Path) -> None:
    """Keep the history as a failed run does."""
    file = HistoryFile(folder / HISTORY)
    for operation in history:
        file.add(operation)
    file.close()


def test_a_kept_history_is_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = Simulated()
    service.append(count=3)
    keep(service.finish(), tmp_path)
    assert main([str(tmp_path)]) == 0
    assert "violations       none" in capsys.readouterr().out


def test_violations_are_reported_with_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = Simulated()
    append = service.append()
    keep(spoiled(service.finish(), append, store_ms=0), tmp_path)
    assert main([str(tmp_path)]) == 1
    assert "VIOLATION        misplaced: orders/0/0 was acknowledged as" in capsys.readouterr().out


def test_counts_and_the_longest_waits_are_reported(tmp_path: Path) -> None:
    """The next append comes six ticks after a fault, and is visible after two more; an old duplicate does not count."""
    service = Simulated()
    old = service.append(count=2)
    service.publish()
    service.pull()
    fault = Fault(("writer", "query"), "kill", service.clock + 0.5)
    service.clock += 5
    service.append()
    service.pull()
    service.publish()
    service.pull()
    repeat = dataclasses.replace(old, invoked=fault.at + 2, completed=service.clock, duplicate=True)
    (tmp_path / "pipeline-001.log").write_text('{"event": "epoch_finished"}\n{"event":"epoch_finished"}\n')
    lines = list(report(Facts([fault, repeat, *service.finish()]), tmp_path))
    assert "batches sent     3: 3 acknowledged" in lines
    assert "messages sent    5: 5 acknowledged" in lines
    assert "  writer + query             1 kill" in lines
    assert any(line.startswith("hand-overs       2 epochs") for line in lines)
    assert lines[-1].split() == ["writer", "+", "query,", "kill", "5.6", "6.6", "7.6"]
