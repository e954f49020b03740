"""ClientGroups: the members of consumer groups by their heartbeats, their subscriptions, and notices of changes.

A client id is listed once, even with two connections: clients divide the queues by the length of the list, and a second
entry would take queues that no client reads. After a restart the members of the process before stay in the list until
they have had time for a heartbeat: because of a partial list two members take the same queues, and without a list Go's
client drops the queues that it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidemark.remoting.codes import VERSION, Language, RequestCode
from tidemark.remoting.frame import request
from tidemark.remoting.groups import CONSUMER_GROUP, ConsumerGroup
from tidemark.remoting.heartbeats import ConsumerData, ConsumeType, MessageModel, SubscriptionData

from .connection import Connection

SETTLE_S = 35.0  # clients send a heartbeat every 30 s
_NOTICE_S = 1.0  # between two notices of changes to one group
_SILENT_S = 120.0  # a client without a heartbeat for this long is no member
_MAX_OPAQUE = 0x7FFFFFFF

SavedMembers = Mapping[str, list[str]]


class ClientState(NamedTuple):
    """One client of a group in answers about the group. address: of its last connection."""

    client_id: str
    address: str
    heartbeat_age_ms: int


@dataclass
class _Member:
    """One client of a group. heard_s: by connection, the time of the last heartbeat, on the event loop's clock."""

    heard_s: dict[Connection, float] = field(default_factory=dict)


@dataclass
class _Group:
    """One consumer group with members."""

    members: dict[str, _Member] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)  # by topic
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    notice: asyncio.TimerHandle | None = None


class ClientGroups:
    """The consumer groups of one server. Lives on its event loop.

    saved: the members of each group at the end of the process before. on_change: called after a client has joined or
    left, with the function that returns all members: a list at each of thousands of changes would take too long.
    """

    def __init__(
        self,
        saved: SavedMembers | None = None,
        *,
        on_change: Callable[[Callable[[], SavedMembers]], None] = lambda _: None,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._groups: dict[str, _Group] = {}
        self._noticed_s: dict[str, float] = {}  # by group, also of groups that have just lost their last member
        self._settling: asyncio.TimerHandle | None = None
        self.expect(saved or {}, settle_s=settle_s)
        self._on_change = on_change
        self._opaque = 0

    def expect(self, saved: SavedMembers, *, settle_s: float = SETTLE_S) -> None:
        """Await *saved*, the members of the process before, which is this one's predecessor from now on."""
        self._awaited = {group: set(members) for group, members in saved.items() if members}
        if self._settling is not None:
            self._settling.cancel()
        self._settling = self._loop.call_later(settle_s, self._settle) if self._awaited else None

    # -- heartbeats -----------------------------------------------------------------------------------------------

    def heard(self, connection: Connection, client_id: str, consumer: ConsumerData) -> bool:
        """Note that *client_id* is a member of the consumer's group; return True if the group has changed."""
        name, now = consumer.group, self._loop.time()
        group = self._groups.setdefault(name, _Group())
        member = group.members.get(client_id)
        is_new = member is None
        if member is None:
            member = group.members[client_id] = _Member()
        member.heard_s[connection] = now
        connection.client_ids.add(client_id)
        group.consume_type, group.message_model = consumer.consume_type, consumer.message_model
        has_changed = self._subscribe(group, consumer) or is_new
        self._awaited.get(name, set()).discard(client_id)
        if has_changed:
            self._notify(name, group)
        if is_new:
            self._on_change(self.saved)
        return has_changed

    def _subscribe(self, group: _Group, consumer: ConsumerData) -> bool:
        """Take over the subscriptions; return True if the topics have changed."""
        before = set(group.subscriptions)
        for subscription in consumer.subscriptions:
            known = group.subscriptions.get(subscription.topic)
            if known is None or subscription.version > known.version:
                group.subscriptions[subscription.topic] = subscription
        if consumer.consume_type is ConsumeType.CONSUME_PASSIVELY:
            topics = {subscription.topic for subscription in consumer.subscriptions}
            for topic in before - topics:
                del group.subscriptions[topic]
        return set(group.subscriptions) != before

    def left(self, client_id: str, group: str) -> None:
        """Remove *client_id* from *group*, with all its connections."""
        self._awaited.get(group, set()).discard(client_id)
        self._remove(group, client_id)

    def lost(self, connection: Connection) -> list[str]:
        """Remove the members that had only *connection*; return the client ids that have no connection left."""
        gone = set(connection.client_ids)
        for name, group in list(self._groups.items()):
            for client_id in connection.client_ids & group.members.keys():
                member = group.members[client_id]
                member.heard_s.pop(connection, None)
                if member.heard_s:
                    gone.discard(client_id)
                else:
                    self._remove(name, client_id)
        return sorted(gone)

    def expire(self) -> list[str]:
        """Remove clients that have sent no heartbeat for two minutes; return their ids."""
        now = self._loop.time()
        least = now - _SILENT_S
        self._noticed_s = {name: at for name, at in self._noticed_s.items() if now - at < _NOTICE_S}
        gone: list[str] = []
        for name, group in list(self._groups.items()):
            for client_id, member in list(group.members.items()):
                if max(member.heard_s.values()) < least:
                    self._remove(name, client_id)
                    gone.append(client_id)
        return gone

    def _remove(self, name: str, client_id: str) -> None:
        group = self._groups.get(name)
        if group is None or group.members.pop(client_id, None) is None:
            return
        if group.members:
            self._notify(name, group)
        else:
            self._drop(name, group)
        self._on_change(self.saved)

    def _drop(self, name: str, group: _Group) -> None:
        if group.notice is not None:
            group.notice.cancel()
        del self._groups[name]

    # -- answers --------------------------------------------------------------------------------------------------

    def listed(self, group: str) -> list[str]:
        """Return the client ids for the group's clients, each once, with the members of the process before."""
        found = self._groups.get(group)
        members = {} if found is None else found.members
        return [*members, *sorted(self._awaited.get(group, set()) - members.keys())]

    def size(self, group: str) -> int:
        """Return the number of listed members."""
        return len(self.listed(group))

    def _settle(self) -> None:
        """Leave out the members of the process before that did not come back, and notify the others."""
        gone, self._awaited, self._settling = self._awaited, {}, None
        for name, awaited in gone.items():
            group = self._groups.get(name)
            if awaited and group is not None:
                self._notify(name, group)
        self._on_change(self.saved)

    def clients(self, group: str) -> list[ClientState]:
        """Return the clients that have sent heartbeats of the group, by id."""
        found, now = self._groups.get(group), self._loop.time()
        states = []
        for client_id, member in sorted(({} if found is None else found.members).items()):
            connection, heard_s = max(member.heard_s.items(), key=lambda one: one[1])
            states.append(ClientState(client_id, connection.address, int((now - heard_s) * 1000)))
        return states

    def topics(self) -> dict[str, list[str]]:
        """Return the topics that each group with members subscribes."""
        return {name: sorted(group.subscriptions) for name, group in self._groups.items()}

    def has_room(self, group: str, client_id: str, groups: int, members: int) -> bool:
        """Return True if *client_id* is a member of *group*, or may become one within the limits."""
        found = self._groups.get(group)
        if found is None:
            return len(self._groups) < groups
        return client_id in found.members or len(found.members) < members

    def topics_with(self, consumer: ConsumerData) -> int:
        """Return the number of topics that the consumer's group subscribes after a heartbeat with *consumer*.

        A consumer that pulls by itself subscribes topic by topic: its heartbeats only add topics.
        """
        topics = {subscription.topic for subscription in consumer.subscriptions}
        found = self._groups.get(consumer.group)
        if found is not None and consumer.consume_type is not ConsumeType.CONSUME_PASSIVELY:
            topics |= found.subscriptions.keys()
        return len(topics)

    def exists(self, group: str) -> bool:
        """Return True if the group has members."""
        return group in self._groups

    def subscription(self, group: str, topic: str) -> SubscriptionData | None:
        """Return the group's subscription of *topic*."""
        found = self._groups.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def saved(self) -> SavedMembers:
        """Return the members of all groups, for the next process.

        Members of the process before are among them while they are awaited: the next start may come sooner than they.
        """
        names = self._groups.keys() | self._awaited.keys()
        return {name: listed for name in names if (listed := self.listed(name))}

    # -- notices --------------------------------------------------------------------------------------------------

    def _notify(self, name: str, group: _Group) -> None:
        """Send a notice to all members, at most one a second."""
        if group.notice is None:
            at = max(self._loop.time(), self._noticed_s.get(name, float("-inf")) + _NOTICE_S)
            group.notice = self._loop.call_at(at, self._send_notice, name, group)

    def _send_notice(self, name: str, group: _Group) -> None:
        group.notice, self._noticed_s[name] = None, self._loop.time()
        self._opaque = (self._opaque + 1) & _MAX_OPAQUE
        notice = request(
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
            CONSUMER_GROUP.write(ConsumerGroup(name)),
            opaque=self._opaque,
            one_way=True,
            language=Language.JAVA,
        )
        assert notice.version == VERSION
        for connection in {connection for member in group.members.values() for connection in member.heard_s}:
            connection.notify(notice)
