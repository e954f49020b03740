from __future__ import annotations

import json

import pytest

from services.indexer.query.web.pretty_json import indented
from tests.unit.query.served_app import ServedApp

PATHS = ["/v1/topics", "/v1/topics/orders/queues/0/messages", "/v1/pull?topic=orders", "/nowhere"]


def test_tokens_are_unchanged() -> None:
    """Numbers keep their digits, and strings their escapes, also those that look like structure."""
    text = b'{"a":[],"b":{},"c":[1.10,-0,12345678901234567890],"d":"{\\"x\\":[1,2]}","e":{"f":null}}'
    assert (
        indented(text).decode()
        == """{
  "a": [],
  "b": {},
  "c": [
    1.10,
    -0,
    12345678901234567890
  ],
  "d": "{\\"x\\":[1,2]}",
  "e": {
    "f": null
  }
}
"""
    )


@pytest.mark.parametrize("path", PATHS)
def test_any_json_answer_is_indented(service: ServedApp, path: str) -> None:
    plain = service.get(path)
    joint = "&" if "?" in path else "?"
    pretty = service.get(f"{path}{joint}pretty=1")
    assert pretty.text.startswith('{\n  "')
    assert int(pretty.headers["Content-Length"]) == len(pretty.content)
    assert pretty.status_code == plain.status_code
    assert json.loads(pretty.content).keys() == json.loads(plain.content).keys()
    assert "\n" not in service.get(f"{path}{joint}pretty=0").text.rstrip("\n")


def test_other_forms_and_values_are_not_indented(service: ServedApp) -> None:
    path = "/v1/topics/orders/queues/0/messages"
    lines = service.get(f"{path}?pretty=1", headers={"Accept": "application/x-ndjson"})
    assert lines.text == service.get(path, headers={"Accept": "application/x-ndjson"}).text
    refusal = service.get(f"{path}?pretty=perhaps")
    assert (refusal.status_code, refusal.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")


@pytest.mark.parametrize("path", PATHS)
def test_json_answers_end_with_a_line_feed(service: ServedApp, path: str) -> None:
    assert service.get(path).content.endswith(b"}\n")
