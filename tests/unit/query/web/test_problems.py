"""Every StoreError becomes a problem with its own reason and status."""

from __future__ import annotations

import orjson
import pytest

from services.indexer.query.web.problems import of_store_error
from tidemark.errors import StoreError
from tidemark.status import STATUS


@pytest.mark.parametrize("leaf", STATUS, ids=lambda leaf: leaf.__name__)
def test_every_store_error_becomes_a_problem_of_its_reason(leaf: type[StoreError]) -> None:
    """The problem has RFC 9457's members, the reason and the facts."""
    response = of_store_error(leaf("what happened", queue_id=3, status="a fact of this name does not win"))
    content = orjson.loads(response.body)
    status = STATUS[leaf]
    assert response.status_code == content["status"] == status.http_status
    assert response.media_type == "application/problem+json"
    assert (content["reason"], content["detail"], content["queue_id"]) == (status.reason, "what happened", 3)
    assert content["type"] == "urn:tidemark:problem:" + status.reason.lower().replace("_", "-")


def test_an_error_outside_the_status_table_is_internal() -> None:
    assert orjson.loads(of_store_error(StoreError("?")).body)["reason"] == "INTERNAL"


def test_retry_after_ms_becomes_the_retry_after_header() -> None:
    leaf = next(leaf for leaf, status in STATUS.items() if status.reason == "IN_FLIGHT_LIMIT")
    assert of_store_error(leaf("later", retry_after_ms=2500)).headers["Retry-After"] == "2"
