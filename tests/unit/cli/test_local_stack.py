"""Ports, sizes and failures of the local stack, without starting Spark."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidemark.cli import local_stack
from tidemark.cli.local_stack import WRITER, LocalStack, ServiceDiedError, free_port, require_free_port
from tidemark.cli.main import app
from tidemark.errors import StoreContradictionError


def test_a_port_in_use_is_told_before_anything_starts(tmp_path: Path) -> None:
    """Nothing is left behind, not even a folder."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StoreContradictionError, match=f"port {port}, for the writer"):
            LocalStack(tmp_path / "data", writer_port=port).start()
    assert not (tmp_path / "data").exists()
    require_free_port(free_port(), "writer")


def test_serve_says_which_port_is_taken_and_fails(tmp_path: Path) -> None:
    """Exit status 1 and one line."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        arguments = ["serve", "--data", str(tmp_path), "--writer-port", str(port), "--query-port", str(free_port())]
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert f"port {port}, for the writer, cannot be used" in result.output


def test_only_kinds_of_files_that_do_not_exist_get_small_sizes(tmp_path: Path) -> None:
    """Where files exist, their own sizes hold and nothing is passed."""
    stack = LocalStack(tmp_path)
    assert stack._settings().items() >= {**local_stack.NEW_LOG_SIZES, **local_stack.NEW_INDEX_SIZES}.items()
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / ("0" * 20)).touch()
    settings = stack._settings()
    assert settings.items() >= local_stack.NEW_INDEX_SIZES.items()
    assert not settings.keys() & local_stack.NEW_LOG_SIZES.keys()


def test_a_new_store_has_rocketmqs_sizes_where_they_are_wanted(tmp_path: Path) -> None:
    """Nothing is passed, so the services take their defaults."""
    settings = LocalStack(tmp_path, small_new_files=False)._settings()
    assert not settings.keys() & (local_stack.NEW_LOG_SIZES.keys() | local_stack.NEW_INDEX_SIZES.keys())


def test_a_size_that_the_environment_gives_is_the_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every setting that a user has set."""
    monkeypatch.setenv("TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES", "1048576")
    settings = LocalStack(tmp_path)._settings()
    assert "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES" not in settings
    assert settings.keys() >= local_stack.NEW_INDEX_SIZES.keys()


def test_metrics_are_off_unless_somebody_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two stacks on one machine would take each other's ports."""
    for name in local_stack.NO_METRICS:
        monkeypatch.delenv(name, raising=False)
    assert LocalStack(tmp_path)._settings().items() >= local_stack.NO_METRICS.items()
    monkeypatch.setenv("TIDEMARK_WRITER_METRICS_LISTEN", "127.0.0.1:8082")
    assert LocalStack(tmp_path)._settings().keys() & local_stack.NO_METRICS.keys() == {
        "TIDEMARK_PIPELINE_METRICS_LISTEN"
    }


def test_a_service_that_dies_at_its_start_is_named_with_its_log(tmp_path: Path) -> None:
    """And nothing runs afterwards."""
    stack = LocalStack(tmp_path, services=(WRITER,), environment={"TIDEMARK_FLUSH_MODE": "sometimes"})
    with pytest.raises(ServiceDiedError, match="writer ended by itself") as raised:
        stack.start()
    assert raised.value.last_lines
    assert stack.services == {}
