"""Ids of requests."""

from __future__ import annotations

import contextvars
import io
import json

import pytest
import structlog

from tidemark.settings.logs import LogLevel, set_up_logging
from tidemark.tracing.request_id import begin_request, current_request_id


@pytest.mark.parametrize("given", ["a", "7f3e-11", "A" * 128, "req:1/2=3@x._+"])
def test_a_valid_request_id_of_the_caller_is_kept(given: str) -> None:
    assert contextvars.copy_context().run(begin_request, given) == given


@pytest.mark.parametrize("given", [None, "", "A" * 129, "a b", "a\n", "a\x00", "ä", '"}'])
def test_an_invalid_request_id_is_replaced(given: str | None) -> None:
    """A caller can write neither its own nor overlong lines into the log."""
    made = [contextvars.copy_context().run(begin_request, given) for _ in range(2)]
    assert given not in made
    assert len(set(made)) == 2
    assert contextvars.copy_context().run(begin_request, made[0]) == made[0]


def test_only_log_lines_of_a_request_have_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request is a task with its own context."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    set_up_logging(LogLevel.INFO)
    log = structlog.get_logger()

    def answer() -> None:
        begin_request("r1")
        log.info("request_failed")

    contextvars.copy_context().run(answer)
    log.info("segment_rolled")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["request_id"]) == ("request_failed", "r1")
    assert "request_id" not in second
    assert current_request_id() is None
