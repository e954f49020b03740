"""`tidemark archive …` as an operator types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tests.built_store import BuiltStore
from tests.integration.archive.conftest import RETRY, Case, fill
from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus


def run(*arguments: object, status: int = 0) -> Any:
    """Return the document that a verb prints."""
    result = CliRunner().invoke(app, ["archive", *map(str, arguments), "--output", "json"])
    assert result.exit_code == status, result.output
    return json.loads(result.stdout) if result.stdout else json.loads(result.stderr)


def test_run_verify_and_compare(case: Case, tmp_path: Path) -> None:
    """Messages that the store has deleted since are reported, and so are messages of another store."""
    done = run("run", case.store.root, case.folder, "--all", "--topic", "orders", "--topic-pattern", "%RETRY.*")
    assert (done["rows"], done["archive"]["rows"], done["left_out"]) == (160, 160, [])
    assert done["physical_end"] == case.store.end
    assert run("verify", case.folder) | {"files": 0} == {
        "store_name": "tidemark-0",
        "physical_end": case.store.end,
        "rows": 160,
        "files": 0,
        "compared_rows": None,
        "gone_from_store": None,
        "left_out": [],
        "findings": [],
    }
    (case.store.root / "commitlog" / f"{0:020d}").unlink()
    compared = run("verify", case.folder, "--against", case.store.root)
    assert compared["compared_rows"] + compared["gone_from_store"] == 160
    assert 0 < compared["gone_from_store"] < 160
    other = BuiltStore(tmp_path / "other", log_file_size=16_384)
    other.topic("orders", queues=3)
    other.topic("batches", batch=True)
    other.topic(RETRY)
    fill(other, 119)
    other.append("orders", b"other", queue_id=2)
    other.publish()
    found = run("verify", case.folder, "--against", other.root, status=ExitStatus.FAILED)["findings"]
    assert ("DIFFERS", "orders", 2) in {(one["reason"], one["topic"], one["queue_id"]) for one in found}


def test_a_run_below_the_first_full_file_names_the_option_for_the_rest(tmp_path: Path) -> None:
    store = BuiltStore(tmp_path / "store")
    store.topic("orders")
    store.append("orders", b"order")
    store.publish()
    result = CliRunner().invoke(app, ["archive", "run", str(store.root), str(tmp_path / "archive")])
    assert result.exit_code == ExitStatus.OK
    assert "archived 0 messages" in result.stdout and "at once with --all" in result.stdout


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    """Invalid Spark settings are refused too, with a reason for programs."""
    (tmp_path / "store").mkdir()
    refused = run("run", tmp_path / "store", tmp_path / "archive", status=ExitStatus.REJECTED)
    assert (refused["reason"], refused["facts"]) == ("ARGUMENT_ILLEGAL", {"argument": "directory"})
    (tmp_path / "store" / "commitlog").mkdir()
    refused = run("run", tmp_path / "store", tmp_path / "archive", "--conf", "x", status=ExitStatus.REJECTED)
    assert refused["facts"] == {"argument": "--conf"}
    refused = run("run", tmp_path / "store", tmp_path / "archive", status=ExitStatus.UNAVAILABLE)
    assert refused["reason"] == "STORE_CLOSED"
    assert run("verify", tmp_path / "store", status=ExitStatus.NOT_FOUND)["reason"] == "OS_ERROR"
