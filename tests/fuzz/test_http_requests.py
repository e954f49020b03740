"""Requests to a real query service in front of a real writer: no argument, header or body makes it fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import strategies as st

from tests.fuzz.target import fuzz
from tests.integration.writer.harness import RunningWriter
from tests.pipeline_runs import build, plan_of
from tests.property.strategies import I8
from tests.query_server import serve_query
from tidemark.status import BY_REASON

pytestmark = pytest.mark.integration

NOT_OF_THE_TABLE = {"NO_SUCH_PATH", "METHOD_NOT_ALLOWED", "NOT_ACCEPTABLE", "HTTP_ERROR"}  # reasons of HTTP itself
NUMBERS = st.sampled_from(
    ["0", "1", "-1", "", "x", "1e3", "1.5", "٣", "00", "+1", " 1", "9" * 19, "9" * 5_000]
) | I8.map(str)
TEXTS = st.sampled_from(["", "A", "k1", "é", "\0", "\x01", "%", "%zz", "a&b=c", "../x", "x" * 5_000]) | st.text(
    max_size=6
)
TIMES = NUMBERS | st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59.999999-23:59",
        "2026-01-01",
        "24:00Z",
        "2026-W01-1T00:00Z",
        "-9223372036854775808",
        "2026-01-01T00:00:00+00:00:00.000001",
    ]
)
ARGUMENTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["offset"]), NUMBERS | st.sampled_from(["earliest", "latest"])),
        st.tuples(st.sampled_from(["max_messages", "max_bytes", "limit", "after", "generation", "queue_id"]), NUMBERS),
        st.tuples(st.sampled_from(["tag", "key", "unique_key", "store", "cursor", "member_id"]), TEXTS),
        st.tuples(st.sampled_from(["time", "from", "to"]), TIMES),
        st.tuples(st.just("wait_ms"), st.sampled_from(["0", "1", "20", "-1", "x"])),
        st.tuples(st.just("body_encoding"), st.sampled_from(["base64", "utf8", "json", "auto", "rot13"])),
        st.tuples(st.just("semantics"), st.sampled_from(["tidemark", "rocketmq", "kafka"])),
        st.tuples(st.just("boundary"), st.sampled_from(["lower", "upper", "x"])),
        st.tuples(TEXTS, TEXTS),
    ),
    max_size=4,
)
TOPICS = st.sampled_from(["orders", "batches", "none", "%RETRY%g", "SCHEDULE_TOPIC_XXXX"]) | TEXTS
GROUPS = st.sampled_from(["g", "billing"]) | TEXTS
QUEUES = st.sampled_from(["0", "1", "2147483647", "2147483648"]) | NUMBERS
IDS = (
    st.sampled_from(["0" * 32, "f" * 32, "7f00000100001f90" + "0" * 16, "0" * 56])
    | st.text("0123456789abcdefg", max_size=56)
    | TEXTS
)
PATHS = st.one_of(
    st.tuples(st.just("topics"), TOPICS, st.just("queues"), QUEUES, st.sampled_from(["messages", "offset", ""])),
    st.tuples(st.just("topics"), TOPICS, st.sampled_from(["messages", "messages:lookup", "queues", "route", ""])),
    st.tuples(st.just("messages"), IDS),
    st.tuples(st.just("messages"), st.just("at"), NUMBERS),
    st.tuples(st.just("groups"), GROUPS, st.just("topics"), TOPICS, st.just("queues"), QUEUES, st.just("offset")),
    st.tuples(st.just("groups"), GROUPS, st.sampled_from(["members", "offsets", ""])),
    st.tuples(st.just("groups"), GROUPS, st.just("members"), TEXTS, st.sampled_from(["heartbeat", ""])),
    st.tuples(st.sampled_from(["topics", "groups", "status", "watermark", "corruptions", "x", ""])),
)
JSON = st.recursive(
    st.none() | st.booleans() | I8 | st.integers(0, 1 << 70) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


MEMBERS = st.sampled_from(
    [
        "body",
        "body_encoding",
        "tag",
        "keys",
        "properties",
        "flag",
        "messages",
        "queue_id",
        "routing_key",
        "offset",
        "topics",
        "expected_next_offset",
        "strategy",
        "session_timeout_ms",
        "member_id",
        "generation",
        "holds",
        "offsets",
        "unique_keys",
        "limit",
        "from",
        "topic",
    ]
)
VALUES = JSON | st.sampled_from(
    ["base64", "utf8", "json", "averagely", "orders", [["orders", 0]], ["orders"], {"a": "b"}]
)
ONE = st.fixed_dictionaries(
    {"body": JSON}, optional=dict.fromkeys(("body_encoding", "tag", "keys", "properties", "flag"), VALUES)
)
BODIES = st.one_of(
    st.binary(max_size=40),
    st.integers(1, 100_000).map(lambda depth: b"[" * depth),
    st.integers(1, 300).map(
        lambda depth: b'{"messages":[{"body_encoding":"json","body":' + b"[" * depth + b"]" * depth + b"}]}"
    ),
    st.dictionaries(MEMBERS, VALUES, max_size=4).map(_json),
    st.fixed_dictionaries({"messages": st.lists(ONE, max_size=3)}, optional={"queue_id": VALUES}).map(_json),
)
ACCEPTS = st.sampled_from(
    [
        "",
        "*/*",
        "application/x-ndjson",
        "application/octet-stream",
        "application/vnd.apache.arrow.stream",
        "text/html",
        "application/json;q=nan",
        "application/json;q=-1, */*;q=1e999",
        ";;,,",
        "a" * 3_000,
    ]
)
PRINTABLE = st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")
KEYS = st.sampled_from(["", "k", "é" * 200, "x" * 1_024, "x" * 1_025]) | st.text(PRINTABLE, max_size=8).map(str.strip)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Serve some messages, one queue of inner batches; the log keeps growing, and the visible part stays."""
    root = tmp_path_factory.mktemp("served") / "store"
    with RunningWriter(root, max_message_size_bytes=1 << 16) as writer:
        with serve_query(root, writer_address=writer.address, query_max_wait_ms=200) as client:
            for body in ("x", "y"):
                for encoding in ("utf8", "json"):
                    message = {"body": body, "body_encoding": encoding, "keys": ["k1"], "tag": "A"}
                    client.post(
                        "/v1/topics/orders/messages", json={"messages": [message], "queue_id": 0}
                    ).raise_for_status()
            build(plan_of(root, shards=1))
            yield client
            assert client.get("/v1/topics/orders/queues/0/messages").json()["messages"]
        assert writer.failure is None


def require_no_failure(answer: httpx.Response) -> None:
    """Require an answer, or a problem of the table that is no failure of the service."""
    if answer.status_code < 400:
        return
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["reason"] in BY_REASON.keys() | NOT_OF_THE_TABLE, problem
    assert answer.status_code < 500, problem


@fuzz(
    few=60,
    at_once=300,
    path=PATHS,
    arguments=ARGUMENTS,
    accept=ACCEPTS,
    method=st.sampled_from(["GET", "GET", "GET", "HEAD", "DELETE", "OPTIONS"]),
)
def test_no_http_request_causes_a_server_error(
    client: httpx.Client, path: tuple[str, ...], arguments: list[tuple[str, str]], accept: str, method: str
) -> None:
    """Paths, query parameters and Accept headers vary."""
    url = "/v1/" + "/".join(quote(part.encode("utf-8", "surrogatepass"), safe="") for part in path)
    headers = {"accept": accept} if accept else {}
    pairs = [
        (name.encode("utf-8", "surrogatepass"), value.encode("utf-8", "surrogatepass")) for name, value in arguments
    ]
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs)
    answer = client.request(method, f"{url}?{query}" if query else url, headers=headers)
    if method != "HEAD":
        require_no_failure(answer)
    assert answer.status_code < 500


@fuzz(few=50, at_once=300, path=PATHS, body=BODIES, key=KEYS, method=st.sampled_from(["POST", "POST", "PUT", "DELETE"]))
def test_no_http_body_causes_a_server_error(
    client: httpx.Client, path: tuple[str, ...], body: bytes, key: str, method: str
) -> None:
    """The body is JSON of any shape, or no JSON, for every path that takes a body."""
    url = "/v1/" + "/".join(quote(part.encode("utf-8", "surrogatepass"), safe="") for part in path)
    require_no_failure(client.request(method, url, content=body, headers={b"idempotency-key": key.encode("latin-1")}))
