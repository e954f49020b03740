"""Pages with JSON bodies: inlined only if common parsers can read the page, whatever a body contains."""

from __future__ import annotations

import base64
import json

import httpx
import pytest

from tests.built_store import BuiltStore
from tidemark.client import Query

pytestmark = pytest.mark.integration

ODD_BODIES = {
    "deep within the limit": (b"[" * 500 + b"]" * 500, "json"),
    "deep beyond the limit": (b"[" * 501 + b"]" * 501, "utf8"),
    "deep objects": (b'{"a":' * 600 + b"1" + b"}" * 600, "utf8"),
    "deep at the reader's own limit": (b"[" * 1021 + b"]" * 1021, "utf8"),
    "very deep": (b"[" * 5000 + b"]" * 5000, "utf8"),
    "brackets in a string": (b'"' + b"[" * 5000 + b'"', "json"),
    "NaN": (b"NaN", "utf8"),
    "lone surrogate": (b'"\\ud800"', "utf8"),
    "number beyond a double": (b"1e400", "utf8"),
    "long number": (b"1" * 6000, "utf8"),
    "repeated names": (b'{"a":1,"a":2}', "json"),
    "pretty": (b'{\r\n  "a": [\n1\n]\n}', "json"),
    "two documents": (b'{"a":1}\n{"b":2}', "utf8"),
    "byte order mark": ("\ufeff{}".encode(), "utf8"),
    "no UTF-8": (b'"\xff"', "base64"),
}


@pytest.fixture
def odd(built: BuiltStore) -> list[bytes]:
    """Write a queue with every odd body between good ones, all with the key `k`; return its bodies."""
    built.topic("odd")
    bodies = [b'{"good": 1}', *(body for body, _ in ODD_BODIES.values()), b'{"good": 2}']
    for body in bodies:
        built.append("odd", body, {"KEYS": "k"})
    built.publish()
    return bodies


def raw(message: dict[str, object]) -> bytes | object:
    """Return the bytes of a message's body, or its JSON value."""
    body, encoding = message["body"], message["body_encoding"]
    if encoding == "json":
        return body
    assert isinstance(body, str)
    return base64.b64decode(body) if encoding == "base64" else body.encode()


@pytest.mark.parametrize("form", ["pull", "ndjson", "by key", "many queues", "scan"])
def test_a_json_page_with_unusual_bodies_is_readable(client: httpx.Client, odd: list[bytes], form: str) -> None:
    path, params = "/v1/topics/odd/queues/0/messages", {"offset": "0", "body_encoding": "json"}
    if form == "pull":
        messages = json.loads(client.get(path, params=params).content)["messages"]
    elif form == "ndjson":
        answer = client.get(path, params=params, headers={"Accept": "application/x-ndjson"})
        messages = [json.loads(line) for line in answer.content.splitlines()]
    elif form == "many queues":
        asked = {"queues": [{"topic": "odd", "queue_id": 0, "offset": 0}], "body_encoding": "json"}
        [part] = json.loads(client.post("/v1/pull", json=asked).content)["answers"]
        messages = part["messages"]
    else:
        key = {"key": "k"} if form == "by key" else {}
        answer = client.get("/v1/topics/odd/messages", params={"limit": 100, "body_encoding": "json", **key})
        messages = json.loads(answer.content)["messages"]
    encodings = ["json", *(encoding for _, encoding in ODD_BODIES.values()), "json"]
    assert [message["body_encoding"] for message in messages] == encodings
    expected = [json.loads(body) if kind == "json" else body for body, kind in zip(odd, encodings, strict=True)]
    assert [raw(message) for message in messages] == expected


def test_the_client_reads_pages_with_unusual_bodies(client: httpx.Client, odd: list[bytes]) -> None:
    with Query(str(client.base_url)) as query:
        assert len(query.pull("odd", 0, 0, body_encoding="json")["messages"]) == len(odd)
        assert len(query.by_key("odd", "k", body_encoding="json", limit=100)["messages"]) == len(odd)
