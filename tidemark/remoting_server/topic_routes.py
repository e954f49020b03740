"""TopicRoutes: answers for the routes of topics (105). The writer is the broker to send to, the query service to read.

Both services have group members with broker id 0, so each has a broker name of its own. A client keeps local positions
by broker name: the names must never change.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemark.access.right import KNOWN_ACTIONS, on_topic
from tidemark.format.topic_name import RETRY_PREFIX, is_topic_name
from tidemark.remoting.codes import ResponseCode
from tidemark.remoting.routes import (
    MASTER,
    PERM_INHERIT,
    PERM_READ,
    PERM_WRITE,
    ROUTE_REQUEST,
    BrokerData,
    QueueData,
    TopicRoute,
    route_body,
)
from tidemark.remoting.sending import DEFAULT_TOPIC
from tidemark.store.originals.topics import TopicConfig

from .exchange import Exchange
from .settings import RouteAddresses

READER_SUFFIX = "-r"  # of the query service's broker name
FindTopic = Callable[[str], TopicConfig | None]


class TopicRoutes:
    """The routes of one store.

    default_queues: queues of a topic that its first message creates; 0 if messages create no topic.
    """

    def __init__(
        self, find: FindTopic, addresses: RouteAddresses, *, store_name: str, cluster: str, default_queues: int
    ) -> None:
        self._find = find
        self._default_queues = default_queues
        self._doors = [
            (BrokerData(name, cluster, {MASTER: address}), permission)
            for name, address, permission in (
                (store_name, addresses.writer, PERM_WRITE),
                (store_name + READER_SUFFIX, addresses.query, PERM_READ),
            )
            if address is not None
        ]

    def answer(self, exchange: Exchange) -> None:
        """Answer a request for a topic's route. Raises ForbiddenError, FieldIllegalError."""
        topic = ROUTE_REQUEST.read(exchange.frame.fields).topic or ""
        config = self._config(topic)
        if config is None:
            remark = f"No topic route info in name server for the topic: {topic}"
            exchange.answer(ResponseCode.TOPIC_NOT_EXIST, remark=remark)
            return
        if topic != DEFAULT_TOPIC:
            exchange.caller.require(on_topic(topic, *KNOWN_ACTIONS))
        exchange.answer(body=route_body(self._route(config)))

    def _config(self, topic: str) -> TopicConfig | None:
        """Return the topic, or the one that a first message will create."""
        if topic == DEFAULT_TOPIC:
            queues = self._default_queues
            all_permissions = PERM_READ | PERM_WRITE | PERM_INHERIT
            return TopicConfig(topic, queues, queues, permission=all_permissions) if queues else None
        found = self._find(topic) if is_topic_name(topic) else None
        if found is None and topic.startswith(RETRY_PREFIX):  # with a route from the start, the first retry is not late
            return TopicConfig(topic, 1, 1)
        return found

    def _route(self, config: TopicConfig) -> TopicRoute:
        doors = [(broker, permission) for broker, permission in self._doors if config.permission & permission]
        inherit = config.permission & PERM_INHERIT
        return TopicRoute(
            tuple(broker for broker, _ in doors),
            tuple(
                QueueData(broker.broker_name, permission | inherit, config.read_queues, config.write_queues)
                for broker, permission in doors
            ),
        )
