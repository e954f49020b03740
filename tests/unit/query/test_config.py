"""Settings of the query service."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.indexer.query.config import QuerySettings


def test_settings_are_read_from_their_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs rely on the names."""
    monkeypatch.setenv("TIDEMARK_STORE_ROOT", "/somewhere")
    monkeypatch.setenv("TIDEMARK_QUERY_LISTEN", "[::1]:99")
    monkeypatch.setenv("TIDEMARK_STORE_NAME", "broker-a")
    monkeypatch.setenv("TIDEMARK_WRITER_ADDRESS", "writer:8081")
    settings = QuerySettings()
    assert (str(settings.store_root), settings.host, settings.port) == ("/somewhere", "::1", 99)
    assert (settings.store_name, settings.writer_address) == ("broker-a", "writer:8081")


@pytest.mark.parametrize(
    "wrong",
    [
        {"query_listen": "8080"},
        {"query_listen": "host:"},
        {"query_listen": "host:70000"},
        {"query_default_messages": 10, "query_max_messages": 5},
        {"query_default_limit": 10, "query_max_limit": 5},
        {"query_session_timeout_ms": 10, "query_min_session_timeout_ms": 20},
        {"query_session_timeout_ms": 30, "query_max_session_timeout_ms": 20},
        {"query_read_threads": 0},
        {"store_name": ""},
    ],
)
def test_contradictory_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        QuerySettings(**wrong)  # type: ignore[arg-type]


def test_every_setting_is_described() -> None:
    for name, field in QuerySettings.model_fields.items():
        assert field.description, name
