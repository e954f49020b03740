from __future__ import annotations

from typing import Any

import pytest

from tests.unit.query.served_app import ServedApp


@pytest.mark.parametrize(
    ("method", "path", "body", "detail"),
    [
        ("GET", "/v1/topics/orders/queues/0/messages?bodyencoding=utf8",
         None, "query.bodyencoding: there is no field bodyencoding; did you mean body_encoding?"),
        ("GET", "/v1/watermark?limit=3", None, "limit: this path has no query parameters"),
        ("POST", "/v1/topics/orders/messages", {"messages": [{"body": "x", "key": "k"}]},
         "body.messages.0.key: there is no field key; did you mean keys?"),
        ("POST", "/v1/topics", {"name": "orders"},
         "body.topic: Field required; body.name: there is no field name; did you mean topic?"),
        ("POST", "/v1/topics", {"topic": "orders", "xyz": 1},
         "body.xyz: there is no field xyz; there are attributes, queues, topic"),
        ("GET", "/v1/topics/orders/queues/0/messages?offset=-5", None,
         "query.offset: expected a queue offset from 0 to 9223372036854775807, earliest or latest"),
        ("GET", "/v1/topic", None, "there is no path /v1/topic; did you mean /v1/topics? /docs lists all paths"),
        ("GET", "/xyz", None, "there is no path /xyz; /docs lists all paths"),
        ("DELETE", "/v1/topics/orders", None,
         "DELETE is not allowed here, but GET; topics are deleted over gRPC: tidemark topic delete"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_the_nearest_right_word(
    service: ServedApp, method: str, path: str, body: Any, detail: str
) -> None:
    answer = service.ask(method, path, json=body)
    assert answer.json()["detail"] == detail
