"""`tidemark config show`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.cli.terminal.exit_status import ExitStatus


def test_every_service_is_shown_with_what_the_environment_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting is shown with its value and source."""
    monkeypatch.setenv("TIDEMARK_FLUSH_MODE", "async")
    monkeypatch.delenv("TIDEMARK_QUERY_URL", raising=False)
    shown = CliRunner().invoke(app, ["config", "show", "--output", "json"])
    settings = json.loads(shown.stdout)
    assert set(settings) == {"client", "writer", "pipeline", "query"}
    assert settings["writer"]["TIDEMARK_FLUSH_MODE"] == {"value": "async", "source": "environment"}
    assert settings["writer"]["TIDEMARK_DEFAULT_QUEUES"] == {"value": 4, "source": "default"}
    assert settings["client"]["TIDEMARK_QUERY_URL"]["value"] == "http://127.0.0.1:8080"


def test_one_service_is_shown_with_its_command_line_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line overrides the environment; the source is the command line only for options that it sets."""
    monkeypatch.setenv("TIDEMARK_SHARDS", "2")
    monkeypatch.setenv("TIDEMARK_EPOCH_MS", "500")
    shown = CliRunner().invoke(
        app, ["config", "show", "pipeline", "-o", "json", "--", "--shards", "3", "--pipeline", "plain", "--once"]
    )
    settings = json.loads(shown.stdout)
    assert set(settings) == {"pipeline"}
    assert settings["pipeline"]["TIDEMARK_SHARDS"] == {"value": 3, "source": "command line"}
    assert settings["pipeline"]["TIDEMARK_PIPELINE"] == {"value": "plain", "source": "command line"}
    assert settings["pipeline"]["TIDEMARK_EPOCH_MS"] == {"value": 500, "source": "environment"}
    assert settings["pipeline"]["TIDEMARK_LEASE_MS"]["source"] == "default"


def test_options_belong_to_one_service() -> None:
    """A client has none."""
    options = ["-o", "json", "--", "--flush-mode", "async"]
    shown = CliRunner().invoke(app, ["config", "show", "writer", *options])
    assert json.loads(shown.stdout)["writer"]["TIDEMARK_FLUSH_MODE"] == {"value": "async", "source": "command line"}
    assert CliRunner().invoke(app, ["config", "show", "client", *options]).exit_code == ExitStatus.USAGE


def test_a_file_replaces_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As with systemd, the shell's variables are ignored; they are restored afterwards."""
    file = tmp_path / "tidemark.env"
    file.write_text("# how we run it\nTIDEMARK_FLUSH_MODE=async\nPATH=/nowhere\n")
    monkeypatch.setenv("TIDEMARK_DEFAULT_QUEUES", "9")
    shown = CliRunner().invoke(app, ["config", "show", "writer", "--env-file", str(file), "--output", "json"])
    settings = json.loads(shown.stdout)["writer"]
    assert settings["TIDEMARK_FLUSH_MODE"] == {"value": "async", "source": "file"}
    assert settings["TIDEMARK_DEFAULT_QUEUES"] == {"value": 4, "source": "default"}
    assert (os.environ["TIDEMARK_DEFAULT_QUEUES"], os.environ["PATH"] == "/nowhere") == ("9", False)


def test_an_invalid_setting_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the environment variable."""
    monkeypatch.setenv("TIDEMARK_FLUSH_MODE", "sometimes")
    shown = CliRunner().invoke(app, ["config", "show"])
    assert shown.exit_code == ExitStatus.REJECTED
    assert "TIDEMARK_FLUSH_MODE: Input should be 'sync' or 'async'" in shown.stderr


def test_an_unknown_variable_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The effective settings are shown too."""
    monkeypatch.setenv("TIDEMARK_FLUSH_MOD", "async")
    shown = CliRunner().invoke(app, ["config", "show", "writer", "--output", "json"])
    assert shown.exit_code == ExitStatus.REJECTED
    assert json.loads(shown.stdout)["writer"]["TIDEMARK_FLUSH_MODE"]["value"] == "sync"
    assert "did you mean TIDEMARK_FLUSH_MODE?" in shown.stderr
