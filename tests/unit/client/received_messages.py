"""Received messages and JSON pages, as the query service answers them."""

from __future__ import annotations

import base64
from typing import Any, cast

from tidemark.client.answers import MessageAnswer, PullAnswer
from tidemark.client.received_message import ReceivedMessage, TopicQueue

ORDERS = TopicQueue("orders", 0)


def received(queue_offset: int = 0, *, queue: TopicQueue = ORDERS, **fields: Any) -> ReceivedMessage:
    """Return one message; *fields* replace its defaults."""
    message = ReceivedMessage(
        *queue, queue_offset, b"x", None, (), {}, None, None, 0, 0, 0, 0, 0, 0, "127.0.0.1:1", "127.0.0.1:2"
    )
    return message.replace(**fields)


def message_json(queue_offset: int, body: bytes = b"x", **members: Any) -> MessageAnswer:
    """Return one message of a JSON answer."""
    message = {
        "queue_offset": queue_offset,
        "body": base64.b64encode(body).decode(),
        "tag": None,
        "keys": [],
        "properties": {},
        "message_id": f"id-{queue_offset}",
        "offset_msg_id": None,
        "physical_offset": 0,
        "store_timestamp_ms": 0,
        "born_timestamp_ms": 0,
        "flag": 0,
        "sys_flag": 0,
        "reconsume_times": 0,
        "born_host": "127.0.0.1:1",
        "store_host": "127.0.0.1:2",
        **members,
    }
    return cast(MessageAnswer, message)


def page_json(requested_offset: int, offsets: list[int], *, end: int, **members: Any) -> PullAnswer:
    """Return the page of a queue with the visible end *end*; it holds the messages at *offsets*."""
    page = {
        "status": "FOUND" if offsets else "OFFSET_OVERFLOW_ONE",
        "messages": [message_json(offset) for offset in offsets],
        "requested_offset": requested_offset,
        "next_offset": offsets[-1] + 1 if offsets else requested_offset,
        "min_offset": 0,
        "max_offset": end,
        "skipped": [],
        **members,
    }
    return cast(PullAnswer, page)
