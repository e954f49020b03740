"""The entry point of the query service: its exit statuses."""

from __future__ import annotations

import faulthandler
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.indexer.query import __main__ as entry
from services.indexer.query.config import QuerySettings
from tidemark.errors import StoreTooNewError


def fail_if_called(settings: QuerySettings) -> int:
    raise AssertionError(settings)


class Main:
    """Runs the entry point with *serve* in place of the server, and keeps the events."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.serve: Callable[[QuerySettings], int] = fail_if_called
        self.events: list[MutableMapping[str, Any]] = []
        for name in ("set_up_logging", "allow_many_files"):  # they change the whole process
            monkeypatch.setattr(entry, name, lambda *_: None)
        monkeypatch.setattr(faulthandler, "enable", lambda: None)
        monkeypatch.setattr(entry, "serve", self._serve)

    def _serve(self, settings: QuerySettings) -> int:
        return self.serve(settings)

    def __call__(self, *arguments: str) -> int:
        with capture_logs() as self.events:
            return entry.main([*arguments])

    def fail(self, error: BaseException) -> int:
        """Return the status if the server raises *error*."""

        def serve(_: QuerySettings) -> int:
            raise error

        self.serve = serve
        return self("--query-listen", "127.0.0.1:1")


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Main:
    return Main(monkeypatch)


@pytest.mark.parametrize("status", [0, 1])
def test_the_status_is_the_servers(main: Main, status: int, tmp_path: Path) -> None:
    served: list[QuerySettings] = []

    def serve(settings: QuerySettings) -> int:
        served.append(settings)
        return status

    main.serve = serve
    assert main("--store-root", str(tmp_path)) == status
    assert [settings.store_root for settings in served] == [tmp_path]


def test_bad_settings_are_status_2_and_named_by_their_variable(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("--query-read-threads", "0") == 2
    assert "TIDEMARK_QUERY_READ_THREADS" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (StoreTooNewError("the store is of a newer program"), "newer program"),
        (PermissionError("no access"), "no access"),
        (SystemExit(1), "127.0.0.1:1"),  # uvicorn's, if it cannot bind
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failure_is_status_1_and_an_event_with_its_cause(main: Main, error: BaseException, message: str) -> None:
    assert main.fail(error) == 1
    (event,) = main.events
    assert event["event"] == "query_failed"
    assert message in event["message"]


def test_a_bug_is_no_exit_status(main: Main) -> None:
    """Its traceback must reach the log of the container."""
    with pytest.raises(ZeroDivisionError):
        main.fail(ZeroDivisionError())
