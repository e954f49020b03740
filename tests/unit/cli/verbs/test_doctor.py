"""Checks of `doctor`."""

from __future__ import annotations

import email.utils
import json
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.fixed_ports import fixed_port
from tidemark.cli.health import doctor_checks
from tidemark.cli.health.doctor_checks import disk_check, java_check, nearest_folder, package_checks, sync_check
from tidemark.cli.health.doctor_services import Heard, clock_check, query_check, writer_check
from tidemark.cli.health.finding import Level
from tidemark.cli.main import app
from tidemark.format.kernels import compiled
from tidemark.local.java import java_version


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Yield a port with a listener that sends no valid response."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.12" 2024-07-16\n', 17),
        ('java version "1.8.0_402"\n', 8),
        ('openjdk version "21" 2023-09-19\n', 21),
        ("command not understood\n", None),
    ],
)
def test_the_java_version_is_parsed(told: str, version: int | None) -> None:
    """The old version form is understood too."""
    assert java_version(told) == version


def test_a_missing_java_fails_where_spark_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A client needs no Java, so it is only a warning."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_check().level is Level.FAIL
    monkeypatch.setattr(doctor_checks, "_version", lambda _: None)
    assert java_check().level is Level.WARN


def test_an_old_java_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check names a remedy."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = java_check()
    assert found.level is Level.FAIL
    assert "11.0.2" in found.text
    assert "17 or 21" in found.next_step


def test_only_missing_packages_of_a_client_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row names the extra that installs them; without numpy there is no row for the loops."""
    installed = {"grpcio", "protobuf", "httptools", "orjson", "pydantic", "isal", "pyarrow"}
    monkeypatch.setattr(doctor_checks, "_version", lambda package: "1.0" if package in installed else None)
    rows = {found.name: (found.level, found.next_step) for found in package_checks()}
    tables, services = (f"pip install 'tidemark[{extra}]' installs them" for extra in ("table", "all"))
    assert rows == {
        "tidemark": (Level.OK, ""),
        "client": (Level.OK, ""),
        "tables": (Level.WARN, tables),
        "services": (Level.WARN, services),
    }


def test_the_engine_of_the_loops_is_reported() -> None:
    """A wheel with compiled loops has them there; a checkout has numba."""
    (loops,) = (found for found in package_checks() if found.name == "loops")
    assert loops.level is Level.OK
    assert ("numba" in loops.text) == (compiled.extension is None)


def test_a_free_address_passes_and_a_foreign_listener_fails(silent_port: int) -> None:
    """The address is the writer's."""
    assert writer_check(f"127.0.0.1:{fixed_port()}").level is Level.OK
    assert writer_check(f"127.0.0.1:{silent_port}").level is Level.FAIL


def test_a_foreign_http_service_fails_the_query_check() -> None:
    """The cases are 200, no listener, another answer, no answer."""
    heard = [Heard(200, None), Heard(None, None, is_free=True), Heard(404, None), Heard(None, None, "timed out")]
    levels = [query_check("http://x", one).level for one in heard]
    assert levels == [Level.OK, Level.OK, Level.FAIL, Level.FAIL]


@pytest.mark.parametrize(("seconds", "level"), [(0, Level.OK), (10, Level.WARN), (-3600, Level.FAIL)])
def test_a_clock_difference_is_reported(seconds: int, level: Level) -> None:
    """The time is read from the Date header."""
    date = email.utils.formatdate(time.time() + seconds, usegmt=True)
    assert clock_check(Heard(200, date)).level is level
    assert clock_check(Heard(None, None)).level is Level.OK


def test_a_disk_without_room_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Little room is only a warning."""
    gigabyte = 1 << 30
    levels = []
    for free in (1 << 20, gigabyte, 10 * gigabyte):
        usage = type(shutil.disk_usage(tmp_path))(100 * gigabyte, 100 * gigabyte - free, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, usage=usage: usage)
        levels.append(disk_check(tmp_path).level)
    assert levels == [Level.FAIL, Level.WARN, Level.OK]


def test_fdatasync_is_measured_and_leaves_no_file(tmp_path: Path) -> None:
    """A folder that cannot be written to fails."""
    assert sync_check(tmp_path).level is not Level.FAIL
    assert not list(tmp_path.iterdir())
    assert sync_check(tmp_path / "no").level is Level.FAIL


def test_the_nearest_existing_parent_of_a_missing_store_is_checked(tmp_path: Path) -> None:
    """The check uses the nearest existing parent folder."""
    assert nearest_folder(tmp_path / "a" / "b") == tmp_path
    assert not (tmp_path / "a").exists()


def test_doctor_ends_with_1_when_something_fails(tmp_path: Path, silent_port: int) -> None:
    """The JSON lists every check."""
    addresses = ["--query", f"http://127.0.0.1:{fixed_port()}", "--data", str(tmp_path), "--output", "json"]
    failed = CliRunner().invoke(app, ["doctor", "--writer", f"127.0.0.1:{silent_port}", *addresses])
    document = json.loads(failed.stdout)
    assert (failed.exit_code, document["ok"]) == (1, False)
    fails = [check["name"] for check in document["checks"] if check["level"] == "fail"]
    assert "writer" in fails
    assert {check["name"] for check in document["checks"]} >= {"python", "java", "disk", "fdatasync", "clock", "memory"}
