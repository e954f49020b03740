"""Progress of `tidemark archive`, which runs as a process of its own here."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.integration.archive.conftest import Case
from tidemark.archive.progress import StepProgress
from tidemark.cli.terminal.exit_status import ExitStatus

pytestmark = pytest.mark.exhaustive  # Spark sessions of its own

_TIMEOUT_S = 300
_COMMAND = [sys.executable, "-m", "tidemark.cli", "archive"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command without a terminal."""
    return subprocess.run(
        [*_COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store of one topic."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders")
    for number in range(50):
        store.append("orders", b"order %d" % number)
    store.publish()
    return store


@pytest.mark.timeout(2 * _TIMEOUT_S)
def test_a_run_reports_its_steps_and_nothing_else(store: BuiltStore, tmp_path: Path) -> None:
    """Spark's notices and tracebacks of a successful run are not shown; --quiet shows nothing."""
    done = run("run", store.root, tmp_path / "archive", "--all")
    assert (done.returncode, done.stdout.splitlines()[0][:28]) == (0, "archived 50 messages in 1 fi"), done.stderr
    lines = done.stderr.splitlines()
    steps = ("starting Spark", *(f"{name}: " for name in ("reading", "writing", "verifying")))
    assert [line for line in lines if not line.startswith(steps)] == []
    for step in steps:
        assert any(line.startswith(step) for line in lines), step
    assert "reading: 0 of 50 messages" in lines
    quiet = run("verify", tmp_path / "archive", "--against", store.root, "--quiet")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert "50 messages compared with the store" in quiet.stdout


def test_a_failed_start_of_spark_shows_the_notices_of_java(store: BuiltStore, tmp_path: Path) -> None:
    """They have the reason."""
    done = run("run", store.root, tmp_path / "archive", "--all", "--conf", "spark.driver.memory=1k")
    assert done.returncode == ExitStatus.UNAVAILABLE
    assert "Traceback" not in done.stderr
    assert ("Too small maximum heap" in done.stderr, done.stdout) == (True, "")


def test_the_steps_of_a_run_count_messages_and_files(case: Case) -> None:
    """The messages of the last report of a step are at most all of its messages."""
    reported: list[StepProgress] = []
    archived = case.archive(on_progress=reported.append, all_records=True)
    rows = archived.manifest.rows
    assert list(dict.fromkeys(one.step for one in reported)) == ["starting Spark", "reading", "writing", "verifying"]
    assert {one.all_messages for one in reported if one.step != "starting Spark"} == {rows}
    assert all(0 <= one.messages <= rows and one.done <= one.total for one in reported)


def test_a_verification_shows_a_bar_on_a_terminal_and_lines_elsewhere(case: Case) -> None:
    """The bar disappears when it ends; the result is on standard output."""
    archived = case.archive(all_records=True, file_bytes=4000)
    rows, files = archived.manifest.rows, len(archived.files)
    lines = run("verify", case.folder)
    assert lines.stderr.splitlines()[0] == f"verifying: 0 of {rows} messages"
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*_COMMAND, "verify", str(case.folder)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        assert process.stdout is not None
        result = process.stdout.read().decode()
    os.close(ours)
    assert f"{rows} of {rows} messages, {files} files" in shown.decode()
    assert result == lines.stdout
    assert run("verify", case.folder, "--quiet").stderr == ""


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the process has closed its end
        return b""
