"""Absurd arguments: 422 problem+json, never a crash, never a file outside the store."""

from __future__ import annotations

import httpx
import pytest

pytestmark = pytest.mark.integration

QUEUE = "/v1/topics/orders/queues/0"


@pytest.mark.parametrize(
    "path",
    [
        f"{QUEUE}/messages?{arguments}"
        for arguments in (
            "offset=-1", "offset=1e3", "offset=", "offset=9223372036854775808", "offset=٣", "offset=1&offset=2",
            "max_messages=0", "max_messages=-5", "max_messages=99999999999999999999", "max_messages=x",
            "max_bytes=0", "max_bytes=1.5", "wait_ms=-1", "wait_ms=forever", "body_encoding=rot13", "semantics=kafka",
            "unknown=1", "Offset=1", "columns=bodies", "columns=", "columns=body",
            "compression=gzip", "dictionaries=maybe",
        )
    ]
    + [f"{QUEUE}/offset?{arguments}" for arguments in (
        "", "time=", "time=yesterday", "time=2026-01-01T00:00:00", "time=99999999999999999999",
        "time=1&boundary=middle",
    )]
    + [
        "/v1/topics/orders/queues/-1/messages", "/v1/topics/orders/queues/x/messages",
        "/v1/topics/orders/queues/99999999999/messages", "/v1/topics/or.ders/queues/0/messages",
        "/v1/topics/../queues/0/messages".replace("..", "%2e%2e"), "/v1/topics/a%00b/queues/0", "/v1/topics/a%0A",
        "/v1/messages/xyz", "/v1/messages/" + "0" * 31, "/v1/messages/" + "g" * 32, "/v1/messages/" + "f" * 32,
        "/v1/messages/at/-1", "/v1/messages/at/x", "/v1/messages/at/9223372036854775808",
        "/v1/topics/orders/messages?limit=0", "/v1/topics/orders/messages?key=",
        "/v1/topics/orders/messages?key=a&unique_key=b",
        "/v1/topics/orders/messages?cursor=zzz", "/v1/topics/orders/messages?from=later",
        "/v1/topics?x=1", "/v1/status?x=1",
        "/v1/corruptions?limit=-1", "/v1/groups/g!", "/v1/watermark?x",
    ],
)  # fmt: skip
def test_absurd_arguments_are_422(client: httpx.Client, path: str) -> None:
    """The reason is ARGUMENT_ILLEGAL."""
    response = client.get(path)
    assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json"), response.text
    assert response.json()["reason"] == "ARGUMENT_ILLEGAL"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/topics/..%2f..%2fetc/queues/0",
        "/v1/topics/..%2f..%2f..%2fetc%2fpasswd",
        "/v1/nothing",
        "/v1/messages/at/1/2",
    ],
)
def test_unknown_paths_are_404(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.json()["reason"]) == (404, "NO_SUCH_PATH")


def test_another_method_is_405(client: httpx.Client) -> None:
    response = client.delete(f"{QUEUE}/messages")
    assert (response.status_code, response.json()["reason"]) == (405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 422, "ARGUMENT_ILLEGAL"),
        (b"{", 422, "ARGUMENT_ILLEGAL"),
        (b"[]", 422, "ARGUMENT_ILLEGAL"),
        (b'{"messages": []}', 422, "ARGUMENT_ILLEGAL"),
        (b'{"messages": [{"body": null}]}', 422, "ARGUMENT_ILLEGAL"),
        (b'{"messages": [{"body": 5}]}', 422, "ARGUMENT_ILLEGAL"),
        (b'{"messages": [{"body": "%", "body_encoding": "base64"}]}', 422, "ARGUMENT_ILLEGAL"),
        (b'{"messages": [{"body": "x", "tags": "A"}]}', 422, "ARGUMENT_ILLEGAL"),
        (b'{"messages": [{"body": "x"}], "queue_id": -1}', 422, "ARGUMENT_ILLEGAL"),
        (b'{"messages": [{"body": "' + b"x" * (17 << 20) + b'"}]}', 413, "MESSAGE_SIZE_EXCEEDED"),
        (b'{"messages": [{"body": "x"}]}', 503, "WRITER_UNREACHABLE"),
    ],
)
def test_invalid_appends_are_refused_before_the_writer_is_called(
    client: httpx.Client, body: bytes, status: int, reason: str
) -> None:
    """They fail before a writer is called; none is configured here."""
    response = client.post("/v1/topics/orders/messages", content=body)
    assert (response.status_code, response.json()["reason"]) == (status, reason)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"offset": -1}', b'{"offset": "1"}', b'{"offset": 1.5}', b'{"offset": 1, "x": 2}']
)
def test_invalid_offsets_are_422(client: httpx.Client, body: bytes) -> None:
    response = client.put("/v1/groups/g/topics/orders/queues/0/offset", content=body)
    assert (response.status_code, response.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")
