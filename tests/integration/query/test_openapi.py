"""The frozen contract: `openapi.json` in this folder is the published one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.integration

FROZEN = Path(__file__).with_name("openapi.json")


def test_the_openapi_document_equals_the_frozen_one(client: httpx.Client) -> None:
    """After an intended change, overwrite the file with the served document."""
    assert client.get("/openapi.json").json() == json.loads(FROZEN.read_text())


def test_every_openapi_reference_resolves(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                assert node["$ref"].removeprefix("#/components/schemas/") in document["components"]["schemas"]
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(document)


def test_the_openapi_examples_match_their_models() -> None:
    """PullAnswer's example is a valid PullAnswer."""
    from services.indexer.query.schema import request_bodies as requests
    from services.indexer.query.schema import responses as models

    for model in (
        models.PullAnswer,
        models.ProblemAnswer,
        requests.AppendBody,
        requests.TopicBody,
        requests.OffsetBody,
        requests.OffsetsBody,
        requests.JoinBody,
        requests.HeartbeatBody,
    ):
        for example in model.model_json_schema()["examples"]:
            model.model_validate(example)


def test_the_page_of_the_api_names_the_document(client: httpx.Client) -> None:
    assert "openapi.json" in client.get("/docs/start.js").text
