"""Completes FastAPI's OpenAPI document.

Adds the bodies and parameters that routes read themselves, and the failures, which are always
`application/problem+json`.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from ..schema.query_arguments import (
    SCHEMA_REFERENCE,
    LogArguments,
    LogBytesArguments,
    LogRecordsArguments,
    MessageArguments,
    PullArguments,
    QueuesArguments,
    SearchArguments,
    TimeArguments,
)
from ..schema.request_bodies import (
    AppendBody,
    HeartbeatBody,
    JoinBody,
    LookupBody,
    OffsetBody,
    OffsetsBody,
    PullQueuesBody,
    RetryBody,
    TopicBody,
)
from ..schema.responses import ProblemAnswer
from .problems import MEDIA_TYPE

_BODIES = (
    AppendBody,
    TopicBody,
    OffsetBody,
    OffsetsBody,
    JoinBody,
    HeartbeatBody,
    PullQueuesBody,
    LookupBody,
    RetryBody,
)
_ARGUMENTS = (
    PullArguments,
    QueuesArguments,
    TimeArguments,
    MessageArguments,
    SearchArguments,
    LogArguments,
    LogRecordsArguments,
    LogBytesArguments,
)
_PROBLEM = SCHEMA_REFERENCE.format(model=ProblemAnswer.__name__)
_ANYWHERE = {  # failures of every path
    "422": "An argument is missing, malformed or out of range",
    "500": "Stored data is damaged, or the service failed",
    "503": "The store, the writer or the service is unavailable",
}
_FASTAPIS_OWN = ("HTTPValidationError", "ValidationError")  # schemas that no answer uses


def describe(app: FastAPI) -> None:
    """Make *app* serve the completed document."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = make()
            _add_schemas(document["components"]["schemas"])
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}, {}]  # {}: without an access file, or with a client certificate
            for path in document["paths"].values():
                for operation in path.values():
                    _describe_failures(operation["responses"])
        return make()

    app.openapi = openapi  # type: ignore[method-assign]


def _add_schemas(schemas: dict[str, Any]) -> None:
    models = [(model, "validation") for model in (*_BODIES, *_ARGUMENTS)]
    _, found = models_json_schema(models, ref_template=SCHEMA_REFERENCE)  # type: ignore[arg-type]
    arguments = {model.__name__ for model in _ARGUMENTS}
    schemas.update({name: schema for name, schema in found["$defs"].items() if name not in arguments})
    for name in _FASTAPIS_OWN:
        schemas.pop(name, None)


def _describe_failures(responses: dict[str, Any]) -> None:
    for status, text in _ANYWHERE.items():
        if status not in responses or not _is_problem(responses[status]):
            responses[status] = {"description": text, "content": {"application/json": {"schema": {"$ref": _PROBLEM}}}}
    for response in responses.values():
        if _is_problem(response):
            response["content"] = {MEDIA_TYPE: response["content"].pop("application/json")}


def _is_problem(response: dict[str, Any]) -> bool:
    """Return True if FastAPI describes the response as JSON of the model ProblemAnswer."""
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref") == _PROBLEM)
