from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.indexer.query.web.problems import MEDIA_TYPE
from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp

PROBLEM = "#/components/schemas/ProblemAnswer"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root: Path = tmp_path_factory.mktemp("openapi")
    with ServedApp(BuiltStore(root)) as service:
        answer: dict[str, Any] = service.get("/openapi.json").json()
    return answer


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_each_reference_names_a_schema_of_the_document(document: dict[str, Any]) -> None:
    named = set(references(document))
    assert PROBLEM in named
    assert named <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


def test_each_failure_below_v1_is_described_as_a_problem(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        if "/v1/" not in name:
            continue
        failures = {status: one for status, one in operation["responses"].items() if status >= "400"}
        assert {"422", "500", "503"} <= failures.keys(), name
        for status, response in failures.items():
            assert response["content"] == {MEDIA_TYPE: {"schema": {"$ref": PROBLEM}}}, (name, status)


def test_each_request_body_is_described(document: dict[str, Any]) -> None:
    """The routes read bodies by themselves, so FastAPI would leave them out."""
    with_body = {name for name, operation in operations(document) if "requestBody" in operation}
    assert with_body == {name for name, _ in operations(document) if name.startswith(("post ", "put "))}


def test_arguments_that_routes_parse_themselves_are_described(document: dict[str, Any]) -> None:
    pull = document["paths"]["/v1/topics/{topic}/queues/{queue_id}/messages"]["get"]["parameters"]
    assert {(one["name"], one["in"]) for one in pull} >= {
        ("topic", "path"),
        ("queue_id", "path"),
        ("offset", "query"),
        ("max_messages", "query"),
        ("wait_ms", "query"),
    }


def test_the_validation_error_of_fastapi_is_not_part_of_the_api(document: dict[str, Any]) -> None:
    assert not {"HTTPValidationError", "ValidationError"} & document["components"]["schemas"].keys()


def test_openapi_lists_the_token_as_an_optional_scheme(document: dict[str, Any]) -> None:
    assert document["security"] == [{"token": []}, {}]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
