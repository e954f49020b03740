"""Right: an action on a resource, in the terms of RocketMQ's access control lists (ACL 2.0)."""

from __future__ import annotations

import enum
from typing import NamedTuple

_OF_A_GROUP = ("%RETRY%", "%DLQ%")


class Action(enum.StrEnum):
    """RocketMQ's Action."""

    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class ResourceKind(enum.StrEnum):
    """RocketMQ's ResourceType."""

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"


class Right(NamedTuple):
    """The right to do any of *actions* to a resource: a topic, a group, or the whole store."""

    kind: ResourceKind
    name: str
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        return f"{'|'.join(self.actions)} {self.kind}:{self.name}"

    @property
    def changes(self) -> bool:
        """True for administrative actions, which the audit log records each time."""
        return bool({Action.CREATE, Action.UPDATE, Action.DELETE} & set(self.actions))


READING = (Action.SUB, Action.GET)  # any of them allows reading messages
KNOWN_ACTIONS = (Action.GET, Action.LIST, Action.PUB, Action.SUB)  # any of them allows seeing that the resource exists


def on_topic(name: str, *actions: Action) -> Right:
    """Return the right to do *actions* to a topic.

    The right to consume for a group covers the group's own topics, for retries and for dead letters.
    """
    for prefix in _OF_A_GROUP:
        if name.startswith(prefix):
            group = name.removeprefix(prefix).partition("+")[0]  # %RETRY%group+topic
            return on_group(group, *actions, Action.SUB)
    return Right(ResourceKind.TOPIC, name, actions)


def on_group(name: str, *actions: Action) -> Right:
    """Return the right to do *actions* to a consumer group."""
    return Right(ResourceKind.GROUP, name, tuple(dict.fromkeys(actions)))


def on_store(name: str, *actions: Action) -> Right:
    """Return the right to do *actions* to the whole store: its raw log, its state."""
    return Right(ResourceKind.CLUSTER, name, actions)
