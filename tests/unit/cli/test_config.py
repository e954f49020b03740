"""`tidemark config show`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tidemark.cli.failures import ExitStatus
from tidemark.cli.main import app


def test_every_service_is_shown_with_what_the_environment_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Value, and where it is from."""
    monkeypatch.setenv("TIDEMARK_FLUSH_MODE", "async")
    monkeypatch.delenv("TIDEMARK_QUERY_URL", raising=False)
    shown = CliRunner().invoke(app, ["config", "show", "--output", "json"])
    settings = json.loads(shown.stdout)
    assert set(settings) == {"client", "writer", "pipeline", "query"}
    assert settings["writer"]["TIDEMARK_FLUSH_MODE"] == {"value": "async", "from_environment": True}
    assert settings["writer"]["TIDEMARK_DEFAULT_QUEUES"] == {"value": 4, "from_environment": False}
    assert settings["client"]["TIDEMARK_QUERY_URL"]["value"] == "http://127.0.0.1:8080"


def test_a_value_that_a_service_would_refuse_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name it has in the environment."""
    monkeypatch.setenv("TIDEMARK_FLUSH_MODE", "sometimes")
    shown = CliRunner().invoke(app, ["config", "show"])
    assert shown.exit_code == ExitStatus.REJECTED
    assert "TIDEMARK_FLUSH_MODE: Input should be 'sync' or 'async'" in shown.stderr
