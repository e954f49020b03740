"""Services as child processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.waiting import until
from tidemark.local.child_service import Service

_PARENT = """
import sys, time
from pathlib import Path
from tidemark.local.child_service import Service
service = Service("s", ["tests.unit.cli.sleeper"], {}, Path(sys.argv[1]))
print(service.pid, flush=True)
time.sleep(60)
"""


def _start(tmp_path: Path, *mode: str) -> Service:
    service = Service("sleeper", ["tests.unit.cli.sleeper", *mode], {}, tmp_path / "log")
    until(lambda: "READY" in service.last_lines())
    return service


def test_a_service_is_stopped_by_sigterm(tmp_path: Path) -> None:
    """It finishes its work and exits with 0."""
    service = _start(tmp_path)
    assert service.exit_status is None
    assert service.stop(10) == 0
    assert service.last_lines() == ["READY", "BYE"]


def test_a_service_that_ignores_sigterm_is_killed_after_the_limit(tmp_path: Path) -> None:
    """A stop always ends."""
    assert _start(tmp_path, "stubborn").stop(0.2) == -signal.SIGKILL


def test_a_failed_service_has_its_exit_status_and_last_lines(tmp_path: Path) -> None:
    """The reason is the exit status and the end of its log."""
    service = _start(tmp_path, "fail")
    assert service.wait(10) == 1
    assert service.last_lines()[-1] == "the disk is on fire"
    assert service.stop(1) == 1


def test_a_service_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """The way in which the parent dies does not matter."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        until(lambda: "READY" in (tmp_path / "log").read_text())
        parent.kill()
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    assert "BYE" in (tmp_path / "log").read_text()


def test_stop_may_be_called_again(tmp_path: Path) -> None:
    """The exit status stays."""
    service = _start(tmp_path)
    assert [service.stop(10), service.stop(10)] == [0, 0]
