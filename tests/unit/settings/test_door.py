"""Reading of a service's settings at its start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from services.indexer.attach.__main__ import main as attach_main
from services.indexer.pipeline.__main__ import main as pipeline_main
from services.indexer.query.__main__ import main as query_main
from services.indexer.query.config import QuerySettings
from services.writer.config import WriterSettings
from services.writer.door import main as writer_main
from tidemark.settings.door import SettingsRefusedError, read_settings


def refusal_of(service: str, settings: type[QuerySettings] | type[WriterSettings]) -> str:
    with pytest.raises(SettingsRefusedError) as refused:
        read_settings(service, settings)
    (line,) = refused.value.lines
    return line


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_STORE_ROOT", str(tmp_path))


def test_a_value_of_the_wrong_type_is_refused_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_QUERY_MAX_MESSAGES", "many")
    assert refusal_of("query", QuerySettings).startswith("query: TIDEMARK_QUERY_MAX_MESSAGES: ")


def test_settings_that_contradict_each_other_are_refused_by_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_QUERY_LISTEN", "8080")
    assert refusal_of("query", QuerySettings).startswith(
        "query: TIDEMARK_QUERY_LISTEN is '8080': expected address:port"
    )
    monkeypatch.setenv("TIDEMARK_MAX_IN_FLIGHT_BYTES", "1048576")
    monkeypatch.setenv("TIDEMARK_MAX_MESSAGE_SIZE_BYTES", "4194304")
    assert refusal_of("writer", WriterSettings).startswith(
        "writer: TIDEMARK_MAX_IN_FLIGHT_BYTES (1048576) must be at least TIDEMARK_MAX_MESSAGE_SIZE_BYTES (4194304)"
    )


@pytest.mark.parametrize("main", [writer_main, pipeline_main, query_main, attach_main])
def test_an_unknown_option_is_refused(main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, and the service does not start."""
    with pytest.raises(SystemExit) as ended:
        main(["--nope"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --nope" in capsys.readouterr().err
