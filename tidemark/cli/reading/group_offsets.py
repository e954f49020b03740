"""Offsets of a consumer group, from the query service."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from tidemark.client import Query


def group_path(group: str) -> str:
    """Return the path of *group* in the REST API."""
    return f"/v1/groups/{quote(group, safe='')}"


def offsets_of(service: Query, group: str, topic: str) -> dict[int, int]:
    """Return the offset of *group* in each queue of *topic*, by queue id; {} for an unknown group."""
    from tidemark.errors import MessageNotFoundError

    try:
        queues = service.get(group_path(group))["queues"]
    except MessageNotFoundError:
        return {}
    return {queue["queue_id"]: queue["offset"] for queue in queues if queue["topic"] == topic}
