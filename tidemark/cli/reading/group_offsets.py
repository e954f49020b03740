"""Offsets of a consumer group, from the query service."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from tidemark.client import Query


def group_path(group: str) -> str:
    """Return the path of *group* in the REST API. Raises ArgumentIllegalError for a name that no group has."""
    require_group(group)
    return f"/v1/groups/{quote(group, safe='')}"


def require_group(group: str) -> None:
    """Raise ArgumentIllegalError for a name that no group has."""
    from tidemark.errors import ArgumentIllegalError
    from tidemark.format.topic_name import is_group_name

    if not is_group_name(group):
        raise ArgumentIllegalError(
            f"{group!r} is not a group's name, which has 1 to 255 letters, digits and %|-_", group=group
        )


def offsets_of(service: Query, group: str, topic: str) -> dict[int, int]:
    """Return the offset of *group* in each queue of *topic*, by queue id; {} for an unknown group."""
    from tidemark.errors import MessageNotFoundError

    try:
        queues = service.get(group_path(group))["queues"]
    except MessageNotFoundError:
        return {}
    return {queue["queue_id"]: queue["offset"] for queue in queues if queue["topic"] == topic}
