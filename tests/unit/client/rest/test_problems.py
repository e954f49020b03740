from __future__ import annotations

import orjson
import pytest

from tidemark.client.rest.connections import Answer
from tidemark.client.rest.problems import error_of, require_success
from tidemark.errors import OffsetTooSmallError, StoreError


def answer(status: int, body: bytes) -> Answer:
    return Answer(status, {}, memoryview(body))


def test_a_successful_answer_is_returned_unchanged() -> None:
    found = answer(204, b"")
    assert require_success(found) is found


def test_a_problem_is_the_exception_of_its_reason_without_the_members_of_rfc_9457() -> None:
    problem = {"type": "about:blank", "title": "Gone", "status": 410, "detail": "deleted", "instance": "/v1/x"}
    with pytest.raises(OffsetTooSmallError) as raised:
        require_success(answer(410, orjson.dumps({**problem, "reason": "OFFSET_TOO_SMALL", "min_offset": 7})))
    assert (raised.value.message, raised.value.facts) == ("deleted", {"min_offset": 7})


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}"])
def test_an_error_of_a_proxy_names_the_status(body: bytes) -> None:
    with pytest.raises(StoreError, match="HTTP 502") as raised:
        require_success(answer(502, body))
    assert type(raised.value) is StoreError


def test_a_reason_of_a_newer_service_is_a_plain_error_with_its_text() -> None:
    error = error_of({"reason": "INVENTED_LATER", "title": "New"}, 418)
    assert (type(error), error.message) == (StoreError, "New")


def test_problem_members_that_are_lists_or_objects_are_not_facts() -> None:
    """Facts are single values, which become attributes of the exception."""
    problem = {"reason": "OFFSET_TOO_SMALL", "errors": [{"loc": "x"}], "limit": {"a": 1}, "path": None, "size": 1.5}
    assert error_of(problem, 422).facts == {"path": None, "size": 1.5}
