"""`tidemark store …` as an operator types it: exit status, JSON on standard output, and no traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.pipeline_runs import GOLDEN_SETTINGS, build, index_contents, plan_of, queue_files, without_derived
from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.index.ledger import Ledger
from tidemark.store.marks import Marks
from tidemark.store.originals.format_file import FORMAT
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

GoldenStore = Callable[[str], Path]


@pytest.fixture
def store(golden_store: GoldenStore, tmp_path: Path) -> Path:
    return Path(shutil.copytree(golden_store("killed/store-recovered"), tmp_path / "store"))


def run(*arguments: object) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error."""
    result = CliRunner().invoke(app, ["store", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def test_check_exits_with_0_for_a_sound_store(store: Path) -> None:
    """One line reports the checked parts."""
    status, output, _ = run("check", store)
    assert status == 0
    assert output.splitlines()[-1] == "12,622 records from 0 to 4822714: sound"


def test_check_exits_with_1_and_lists_the_findings(store: Path) -> None:
    """The output is text or JSON."""
    (store / "commitlog" / "notes.txt").touch()
    status, output, _ = run("check", store)
    assert (status, output.splitlines()[0]) == (
        1,
        "FOREIGN_FILE commitlog/notes.txt: a foreign file in a data folder",
    )
    status, output, _ = run("check", store, "--json", "--from", 1_000_000, "--to", 2_000_000, "--no-index")
    report = json.loads(output)
    assert (status, [finding["reason"] for finding in report["findings"]]) == (1, ["FOREIGN_FILE"])
    assert 1_000_000 <= report["start"] < report["end"] < 2_010_000


def test_check_reports_a_verdict_for_each_queue(store: Path) -> None:
    """A queue with a missing file is wrong, the others are sound; the exit status shows it too."""
    report = json.loads(run("check", store, "--queues", "--json")[1])
    assert {queue["verdict"] for queue in report["queues"]} == {"sound"}
    assert sum(queue["records"] for queue in report["queues"]) == report["records"] == 12_622
    simple = next(queue for queue in report["queues"] if queue["kind"] == "SimpleCQ" and queue["records"] > 200)
    folder = StorePaths(store).queue(simple["topic"], simple["queue_id"], batch=False)
    min(folder.iterdir()).unlink()
    status, output, _ = run("check", store, "--queues", "--json")
    wrong = [queue for queue in json.loads(output)["queues"] if queue["verdict"] != "sound"]
    assert (status, len(wrong)) == (1, 1)
    assert (wrong[0]["topic"], wrong[0]["queue_id"], wrong[0]["verdict"]) == (
        simple["topic"],
        simple["queue_id"],
        "wrong",
    )
    table = run("check", store, "--queues")[1]
    assert f"wrong: {wrong[0]['findings']} findings" in table


def test_corruptions_lists_the_ledger(store: Path) -> None:
    """The status is 0 without entries, 1 with some."""
    assert run("corruptions", store)[:2] == (0, "no damage was found\n")
    paths = StorePaths(store)
    paths.indexer.mkdir(parents=True)
    Ledger(paths.indexer, 0, DiskStorage()).record(physical_offset=77, size=10, reason="MAGIC")
    status, output, _ = run("corruptions", store, "--json")
    content = json.loads(output)
    assert (status, content["total"], content["corruptions"][0]["physical_offset"]) == (1, 1, 77)
    assert "MAGIC" in run("corruptions", store)[1]


def test_a_backup_can_be_verified_and_restored(store: Path, tmp_path: Path) -> None:
    """The round trip works; a damaged backup gives 1, no backup gives 3."""
    folder, restored = tmp_path / "backup", tmp_path / "restored"
    status, output, _ = run("backup", store, folder, "--output", "json")
    assert (status, json.loads(output)["end"]) == (0, 4822714)
    assert run("verify-backup", folder)[0] == 0
    status, output, _ = run("restore", folder, restored, "--output", "json")
    assert (status, json.loads(output)["end"]) == (0, 4822714)
    status, output, _ = run("check", restored)
    assert (status, output.splitlines()[0].split()[0]) == (0, "QUEUES_LAG")
    (folder / "commitlog" / f"{0:020d}").unlink()
    status, output, _ = run("verify-backup", folder, "--output", "json")
    assert (status, json.loads(output)["flaws"][0]["reason"]) == (1, "FILE_MISSING")
    assert run("verify-backup", store)[0] == ExitStatus.NOT_FOUND


@pytest.mark.parametrize("verb", [["check"], ["corruptions"], ["rebuild"], ["backup", "elsewhere"]])
def test_a_store_of_a_newer_major_version_is_refused(store: Path, tmp_path: Path, verb: list[str]) -> None:
    """The error is a message with facts, not a traceback."""
    (store / "tidemark").mkdir()
    (store / "tidemark" / "format").write_text(json.dumps({"version": {"major": FORMAT.major + 1, "minor": 0}}))
    status, _, errors = run(verb[0], store, *(tmp_path / name for name in verb[1:]))
    assert status == ExitStatus.UNAVAILABLE
    assert f"has format {FORMAT.major + 1}.0" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("arguments", [["check", "nowhere"], ["check"], ["restore", "nowhere", "x"], ["no-such-verb"]])
def test_a_usage_error_exits_with_2(arguments: list[str]) -> None:
    """This is click's status."""
    assert run(*arguments)[0] == 2


def test_a_killed_and_repeated_rebuild_gives_the_same_bytes(golden_store: GoldenStore, tmp_path: Path) -> None:
    """The real verb and pipeline are killed with SIGKILL when the first mark has moved, or the pipeline has started."""
    name = "mixed/store"
    root = without_derived(golden_store(name), tmp_path / "store")
    build(plan_of(root, **GOLDEN_SETTINGS[name]))
    wanted = queue_files(root), index_contents(root)
    command = [sys.executable, "-m", "tidemark.cli", "store", "rebuild", str(root)]
    environment = {**os.environ, "TIDEMARK_CHUNK_SIZE_BYTES": "4096", "TIDEMARK_LOG_LEVEL": "error"}
    with subprocess.Popen(command, env=environment) as process:
        deadline = time.monotonic() + 200
        while process.poll() is None and not _has_begun(root):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while subprocess.run([*command, "--queues", "--index"], env=environment, check=False).returncode != 0:
        assert time.monotonic() < deadline, "the pipeline of the killed run did not end"
    assert (queue_files(root), index_contents(root)) == wanted
    assert not list(root.glob("*.dropped"))


@pytest.mark.exhaustive  # `make integration`; with a dying executor: `make cluster-test`
def test_a_killed_rebuild_on_spark_continues(golden_store: GoldenStore, tmp_path: Path) -> None:
    """It is killed after some ranges are scanned: the next run scans only the others; the bytes are the follower's."""
    name = "mixed/store"
    root = without_derived(golden_store(name), tmp_path / "store")
    build(plan_of(root, **GOLDEN_SETTINGS[name]))
    wanted = queue_files(root), index_contents(root)
    scan = StorePaths(root).indexer / "scan"
    command = [sys.executable, "-m", "tidemark.cli", "store", "rebuild", str(root), "--output", "json"]
    command += ["--master", "local[2]"]
    environment = {**os.environ, "TIDEMARK_SCAN_RANGE_SIZE_BYTES": "4096", "TIDEMARK_CHUNK_SIZE_BYTES": "4096"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 200
        while process.poll() is None and len(list(scan.glob("*.rows"))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while True:
        again = subprocess.run(command, env=environment, capture_output=True, check=False)
        if again.returncode == 0:
            break
        assert time.monotonic() < deadline, "the pipeline of the killed run did not end"
    assert (queue_files(root), index_contents(root)) == wanted
    report = json.loads(again.stdout)
    assert 2 <= report["reused_ranges"] <= report["ranges"]
    assert report["records"] > 0 and report["bytes_per_s"] > 0
    assert not scan.exists()


def _has_begun(root: Path) -> bool:
    marks = Marks.open_read_only(StorePaths(root).marks)
    try:
        return any(0 < marks.visible(shard) < 4_000_000 for shard in range(marks.shards))
    finally:
        marks.close()
