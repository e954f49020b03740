"""`tidemark log cat` on logs of a broker."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.index.check.scope import whole_store
from tidemark.index.check.store import check_store
from tidemark.store.paths import StorePaths

GoldenStore = Callable[[str], Path]
_BODY_AT = 88  # docs/format.md: in a record whose hosts have 8 bytes


@pytest.fixture
def store(golden_store: GoldenStore, tmp_path: Path) -> Path:
    """Return a writable copy of a broker's store."""
    return Path(shutil.copytree(golden_store("killed/store-recovered"), tmp_path / "store"))


def cat(*arguments: object) -> tuple[int, list[dict[str, Any]], str]:
    """Return the exit status, the messages and standard error."""
    result = CliRunner().invoke(app, ["log", "cat", *map(str, arguments), "--output", "json"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_all_records_are_decoded_in_the_order_of_the_log(store: Path) -> None:
    """The count is that of a store check, for the store's folder and its commitlog folder."""
    status, messages, errors = cat(store)
    places = [message["physical_offset"] for message in messages]
    assert (status, errors) == (ExitStatus.OK, "")
    assert places == sorted(places)
    paths = StorePaths(store)
    assert len(set(places)) == check_store(paths, whole_store(paths)).records
    assert cat(store / "commitlog") == (status, messages, errors)
    assert {"topic", "queue_id", "queue_offset", "body", "body_encoding", "keys"} <= messages[0].keys()


def test_offset_max_and_topic_select_messages(store: Path) -> None:
    """The offset is that of a record."""
    _, messages, _ = cat(store, "--max", 100)
    assert len(messages) == 100
    again = cat(store, "--offset", messages[50]["physical_offset"], "--max", 2)
    assert again == (ExitStatus.OK, messages[50:52], "")
    topic = messages[0]["topic"]
    assert {message["topic"] for message in cat(store, "--topic", topic, "--max", 5)[1]} == {topic}


def test_damaged_records_are_reported_and_skipped(store: Path) -> None:
    """One record has an overwritten head, another an overwritten body: exit status 1, all other records are printed."""
    _, sound, _ = cat(store)
    head, body = sound[100], sound[200]
    path = min((store / "commitlog").iterdir())
    with path.open("r+b") as file:
        file.seek(head["physical_offset"])
        file.write(b"\xff" * 8)
        at = body["physical_offset"] + _BODY_AT
        file.seek(at)
        file.write(bytes([path.read_bytes()[at] ^ 0xFF]))
    status, messages, errors = cat(store)
    told = [json.loads(line)["damage"]["physical_offset"] for line in errors.splitlines()]
    assert status == ExitStatus.FAILED
    assert told == [head["physical_offset"], body["physical_offset"]]
    assert messages == [message for message in sound if message["physical_offset"] not in told]


def test_a_torn_end_is_not_damage(store: Path) -> None:
    """Nothing follows it: the log ends there."""
    _, sound, _ = cat(store)
    paths = sorted((store / "commitlog").iterdir())
    last = sound[-1]["physical_offset"]
    path = next(path for path in reversed(paths) if int(path.name) <= last)
    with path.open("r+b") as file:
        file.seek(last - int(path.name) + 20)
        file.write(bytes(path.stat().st_size - file.tell()))
    status, messages, errors = cat(store)
    assert (status, errors) == (ExitStatus.OK, "")
    assert [message["physical_offset"] for message in messages] == [
        message["physical_offset"] for message in sound if message["physical_offset"] != last
    ]


def test_a_folder_without_a_log_or_an_offset_outside_it_is_refused(store: Path, tmp_path: Path) -> None:
    """The error names the range of the log."""
    (tmp_path / "empty").mkdir()
    assert cat(tmp_path / "empty")[0] == ExitStatus.REJECTED
    status, _, errors = cat(store, "--offset", 1 << 40)
    assert status == ExitStatus.REJECTED
    assert "is not in a file" in errors


def test_a_text_line_has_offset_queue_tag_keys_and_body(store: Path) -> None:
    """The line contains no control sequence of a terminal."""
    _, (message,), _ = cat(store, "--max", 1)
    shown = CliRunner().invoke(app, ["log", "cat", str(store), "--max", "1"]).stdout
    assert f"{message['topic']}/{message['queue_id']}@{message['queue_offset']}" in shown
    assert shown.rstrip("\n").isprintable()
