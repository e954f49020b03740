"""The REST contract against a real service: schemathesis makes requests from the served document."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks as openapi

from tests.fuzz.target import fuzz
from tests.fuzz.test_http_requests import client

__all__ = ["client"]
pytestmark = pytest.mark.integration
OF_ANY_HTTP_SERVER = {400, 414, 431}  # before the operation is known
CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi.status_code_conformance,
    openapi.content_type_conformance,
    openapi.response_schema_conformance,
]


@pytest.fixture(scope="module")
def contract(client: httpx.Client) -> Any:
    """Return the service's own document."""
    return schemathesis.openapi.from_dict(client.get("/openapi.json").json())


@fuzz(few=60, at_once=100, data=st.data())
def test_answers_match_the_openapi_document(client: httpx.Client, contract: Any, data: st.DataObject) -> None:
    """Status, media type and shape are documented, for requests that match the document and for others."""
    operations = [result.ok() for result in contract.get_all_operations()]
    operation = data.draw(st.sampled_from(operations), label="operation")
    mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
    case = data.draw(operation.as_strategy(generation_mode=mode))
    answer = case.call(base_url=str(client.base_url))
    if answer.status_code not in OF_ANY_HTTP_SERVER:
        case.validate_response(answer, checks=CHECKS)
