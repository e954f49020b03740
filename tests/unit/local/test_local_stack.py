"""Ports, sizes and failures of the local stack, without starting Spark."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.fixed_ports import fixed_port
from tidemark.cli.main import app
from tidemark.errors import StoreContradictionError, UnavailableError
from tidemark.local import local_stack, service_packages
from tidemark.local.local_stack import QUERY, WRITER, LocalStack, ServiceDiedError, require_free_port


def test_a_port_in_use_is_reported_before_any_service_starts(tmp_path: Path) -> None:
    """No file or folder is left."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StoreContradictionError, match=f"port {port}, for the writer"):
            LocalStack(tmp_path / "data", writer_port=port).start()
    assert not (tmp_path / "data").exists()
    require_free_port(fixed_port(), "writer")


def test_serve_reports_the_port_in_use_and_fails(tmp_path: Path) -> None:
    """It prints one line and exits with 1."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        arguments = ["serve", "--data", str(tmp_path), "--writer-port", str(port), "--query-port", str(fixed_port())]
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert f"port {port}, for the writer, cannot be used" in result.output


def test_only_new_kinds_of_files_get_small_sizes(tmp_path: Path) -> None:
    """Existing files keep their own sizes, and nothing is passed."""
    stack = LocalStack(tmp_path)
    assert stack._settings().items() >= {**local_stack.NEW_LOG_SIZES, **local_stack.NEW_INDEX_SIZES}.items()
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / ("0" * 20)).touch()
    settings = stack._settings()
    assert settings.items() >= local_stack.NEW_INDEX_SIZES.items()
    assert not settings.keys() & local_stack.NEW_LOG_SIZES.keys()


def test_a_new_store_has_rocketmqs_sizes_with_small_new_files_off(tmp_path: Path) -> None:
    """Nothing is passed, so the services use their defaults."""
    settings = LocalStack(tmp_path, small_new_files=False)._settings()
    assert not settings.keys() & (local_stack.NEW_LOG_SIZES.keys() | local_stack.NEW_INDEX_SIZES.keys())


def test_a_size_in_the_environment_is_passed_to_the_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every setting of the user is passed on."""
    monkeypatch.setenv("TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES", "1048576")
    settings = LocalStack(tmp_path)._settings()
    assert "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES" not in settings
    assert settings.keys() >= local_stack.NEW_INDEX_SIZES.keys()


def test_metrics_are_off_without_an_address_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two stacks on one machine would compete for the ports."""
    for name in local_stack.NO_METRICS:
        monkeypatch.delenv(name, raising=False)
    assert LocalStack(tmp_path)._settings().items() >= local_stack.NO_METRICS.items()
    monkeypatch.setenv("TIDEMARK_WRITER_METRICS_LISTEN", "127.0.0.1:8082")
    assert LocalStack(tmp_path)._settings().keys() & local_stack.NO_METRICS.keys() == {
        "TIDEMARK_PIPELINE_METRICS_LISTEN"
    }


def test_a_service_that_exits_at_its_start_is_reported_with_its_log(tmp_path: Path) -> None:
    """No service runs afterwards."""
    stack = LocalStack(tmp_path, services=(WRITER,), environment={"TIDEMARK_FLUSH_MODE": "sometimes"})
    with pytest.raises(ServiceDiedError, match="writer ended by itself") as raised:
        stack.start()
    assert raised.value.last_lines
    assert stack.services == {}


def fake_java(folder: Path, version: str) -> Path:
    """Make a Java home whose `java -version` reports *version*."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return folder


def test_an_old_java_is_reported_before_any_service_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a folder is made."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "java", "11.0.2")))
    arguments = ["serve", "--data", str(tmp_path / "data"), "--writer-port", str(fixed_port())]
    result = CliRunner().invoke(app, [*arguments, "--query-port", str(fixed_port())])
    assert result.exit_code == 1
    message = " ".join(result.output.split())
    assert "11.0.2" in message
    assert "needs Java 17 or 21" in message
    assert not (tmp_path / "data").exists()


def test_a_missing_java_is_reported_before_any_service_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(StoreContradictionError, match=r"cannot be started.*needs Java 17 or 21"):
        LocalStack(tmp_path / "data").start()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("lacking", "engine", "message"),
    [
        (
            {"pyspark", "fastapi"},
            "spark",
            r"not installed: fastapi, pyspark; pip install .tidemark\[all\]. installs them$",
        ),
        ({"pyspark"}, "spark", "not installed: pyspark; .*, or --pipeline plain does without"),
        ({"fastapi"}, "plain", "not installed: fastapi; pip install"),
    ],
)
def test_missing_packages_are_reported_before_any_service_starts(
    lacking: set[str], engine: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These packages are missing after `pip install "tidemark[client]"`."""
    monkeypatch.setattr(service_packages, "find_spec", lambda name: None if name in lacking else find_spec(name))
    with pytest.raises(StoreContradictionError, match=message):
        LocalStack(tmp_path / "data", environment={"TIDEMARK_PIPELINE": engine}).start()
    assert not (tmp_path / "data").exists()


def test_services_without_spark_need_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer fails for a reason of its own, so it was started."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    stack = LocalStack(tmp_path / "data", services=(WRITER,), environment={"TIDEMARK_FLUSH_MODE": "sometimes"})
    with pytest.raises(ServiceDiedError):
        stack.start()


@pytest.fixture
def _deaf_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the writer's module by one that runs for a minute and never listens."""
    monkeypatch.setattr(local_stack, "service_module", lambda _: "tests.unit.cli.sleeper")


@pytest.mark.usefixtures("_deaf_writer")
def test_a_slow_service_is_reported_until_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_stack, "REPORT_S", 0.1)
    waits: list[tuple[str, float]] = []
    stack = LocalStack(tmp_path / "data", services=(WRITER,), start_timeout_s=1)
    with pytest.raises(UnavailableError, match=r"writer is not healthy after 1 s.*--start-timeout.*writer\.log"):
        stack.start(on_wait=lambda name, seconds: waits.append((name, seconds)))
    assert {name for name, _ in waits} == {WRITER}
    assert [seconds for _, seconds in waits] == sorted(seconds for _, seconds in waits)
    assert stack.services == {}


def test_the_pipeline_gets_the_limit_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shorter limit of the pipeline would end it on a slow machine."""
    monkeypatch.delenv("TIDEMARK_START_TIMEOUT_S", raising=False)
    assert LocalStack(tmp_path, start_timeout_s=900)._settings()["TIDEMARK_START_TIMEOUT_S"] == "900"


@pytest.mark.usefixtures("_deaf_writer")
def test_serve_prints_the_service_that_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_stack, "REPORT_S", 0.1)
    arguments = ["serve", "--data", str(tmp_path / "data"), "--start-timeout", "1"]
    ports = ["--writer-port", str(fixed_port()), "--query-port", str(fixed_port())]
    result = CliRunner().invoke(app, [*arguments, *ports])
    assert result.exit_code == 1
    assert "waiting for writer for 0 s (at most 1 s); its log: " in result.output


def test_a_service_that_exits_while_another_is_awaited_is_reported_immediately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query service is awaited and would never answer; the writer has died meanwhile."""
    monkeypatch.setattr(local_stack, "service_module", lambda name: "json.tool" if name == "writer" else _SLEEPER)
    monkeypatch.setattr(local_stack, "_listens", lambda _: True)
    stack = LocalStack(tmp_path / "data", services=(WRITER, QUERY), start_timeout_s=60)
    with pytest.raises(ServiceDiedError, match="writer ended by itself") as raised:
        stack.start()
    assert raised.value.last_lines


_SLEEPER = "tests.unit.cli.sleeper"
