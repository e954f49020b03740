"""GroupRequests: answers heartbeats (34), leaving clients (35) and questions for the members of a group (38)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidemark.access.right import Action, on_group, on_topic
from tidemark.errors import InFlightLimitError
from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting.field_table import field_illegal
from tidemark.remoting.groups import CONSUMER_GROUP, UNREGISTER_CLIENT, consumer_list_body
from tidemark.remoting.heartbeats import HeartbeatData, parse_heartbeat

from .client_groups import ClientGroups
from .connection import Connection
from .exchange import Exchange, Handler

_RETRY_AFTER_MS = 1_000
_MOST_NAME = 255  # characters of a group, topic or client id; RocketMQ's limit of groups
_MOST_EXPRESSION = 32_767  # characters of a subscription's expression


class GroupLimits(NamedTuple):
    """Most groups with members, members of a group, and topics of a member."""

    groups: int
    members: int
    topics: int


class GroupRequests:
    """The requests about groups.

    on_gone: called with the id of each client that has left a group, and the group; None: all groups.
    """

    def __init__(
        self, groups: ClientGroups, limits: GroupLimits, *, on_gone: Callable[[str, str | None], None] = lambda *_: None
    ) -> None:
        self._groups = groups
        self._limits = limits
        self._on_gone = on_gone

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._members,
        }

    def lost(self, connection: Connection) -> None:
        """Remove the members whose last connection was *connection*."""
        for client_id in self._groups.lost(connection):
            self._on_gone(client_id, None)

    def expire(self) -> None:
        """Remove the members that have become silent."""
        for client_id in self._groups.expire():
            self._on_gone(client_id, None)

    def _heartbeat(self, exchange: Exchange) -> None:
        heartbeat = parse_heartbeat(exchange.frame.body)
        self._require_allowed(exchange, heartbeat)
        for consumer in heartbeat.consumers:
            self._groups.heard(exchange.connection, heartbeat.client_id, consumer)
        exchange.answer()

    def _require_allowed(self, exchange: Exchange, heartbeat: HeartbeatData) -> None:
        limits = self._limits
        _require_short("clientID", heartbeat.client_id, _MOST_NAME)
        new_groups = {consumer.group for consumer in heartbeat.consumers if not self._groups.exists(consumer.group)}
        for consumer in heartbeat.consumers:
            _require_short("groupName", consumer.group, _MOST_NAME)
            exchange.caller.require(on_group(consumer.group, Action.SUB))
            for subscription in consumer.subscriptions:
                _require_short("topic", subscription.topic, _MOST_NAME)
                _require_short("subString", subscription.expression, _MOST_EXPRESSION)
                exchange.caller.require(on_topic(subscription.topic, Action.SUB))
            topics = self._groups.topics_with(consumer)
            if topics > limits.topics:
                raise _full(f"group {consumer.group} subscribes {topics} topics", limits.topics)
            groups = limits.groups - max(0, len(new_groups) - 1)
            if not self._groups.has_room(consumer.group, heartbeat.client_id, groups, limits.members):
                raise _full(f"there is no room for another member of group {consumer.group}", limits.members)

    def _unregister(self, exchange: Exchange) -> None:
        asked = UNREGISTER_CLIENT.read(exchange.frame.fields)
        if asked.consumer_group is not None:
            exchange.caller.require(on_group(asked.consumer_group, Action.SUB))
            self._groups.left(asked.client_id, asked.consumer_group)
            self._on_gone(asked.client_id, asked.consumer_group)
        exchange.answer()

    def _members(self, exchange: Exchange) -> None:
        group = CONSUMER_GROUP.read(exchange.frame.fields).consumer_group
        exchange.caller.require(on_group(group, Action.SUB, Action.GET))
        members = self._groups.listed(group)
        if members:
            exchange.answer(body=consumer_list_body(members))
        else:
            exchange.answer(ResponseCode.SYSTEM_ERROR, remark=f"no consumer for this group, {group}")


def _require_short(field: str, value: str, limit: int) -> None:
    if len(value) > limit:
        raise field_illegal(field, value, f"a text of at most {limit:,} characters")


def _full(message: str, limit: int) -> InFlightLimitError:
    return InFlightLimitError(f"{message}: at most {limit}", limit=limit, retry_after_ms=_RETRY_AFTER_MS)
