"""Calls handlers of the query service's remoting server as a connection does, without a socket."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from services.indexer.query.remoting.offset_commits import OffsetCommits
from tests.unit.query.served_app import WAIT_S, ServedApp
from tidemark.access.identity import Presented
from tidemark.errors import StoreError
from tidemark.remoting import Frame, decode
from tidemark.remoting.frame import Buffer, request
from tidemark.remoting.heartbeats import (
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from tidemark.remoting_server.client_groups import ClientGroups
from tidemark.remoting_server.connection import Connection
from tidemark.remoting_server.exchange import Exchange, Handler


class FakeConnection:
    """Keeps the bytes that a connection would send."""

    def __init__(self) -> None:
        self.address = "127.0.0.1"
        self.is_full = False
        self.client_ids: set[str] = set()
        self.sent: list[Buffer] = []
        self.finished: list[int] = []
        self.notices: list[Frame] = []

    def finish(self, _request_code: int, response_code: int, data: Sequence[Buffer]) -> None:
        self.sent += data
        self.finished.append(response_code)

    def notify(self, frame: Frame) -> None:
        self.notices.append(frame)


class Desk:
    """One client at the handlers of *service*."""

    def __init__(self, service: ServedApp, handlers: Mapping[int, Handler], token: str | None = None) -> None:
        self._service = service
        self._handlers = handlers
        self._token = token
        self._opaque = itertools.count(1)

    async def start(
        self,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        one_way: bool = False,
        connection: FakeConnection | None = None,
    ) -> Frame | None:
        """Return the answer; None if the request is one way. connection: default: a new one."""
        connection = connection or FakeConnection()
        connection.sent, connection.finished = [], []
        texts = {name: str(value) for name, value in (fields or {}).items()}
        frame = request(code, texts, body, opaque=next(self._opaque), one_way=one_way)
        presented = Presented(self._token, None)
        caller = self._service.state.guard.admit(presented, address=connection.address, action=str(code))
        exchange = Exchange(cast(Connection, connection), frame, caller)
        try:
            rest = self._handlers[code](exchange)
            if rest is not None:
                await rest
        except StoreError as error:
            exchange.refuse(error)
        assert len(connection.finished) == 1, "a request must be answered exactly once"
        return decode(b"".join(connection.sent)) if connection.sent else None

    def ask(
        self,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        connection: FakeConnection | None = None,
    ) -> Frame:
        """Return the answer to one request. Raises TimeoutError."""
        asked = self.start(code, fields, body, connection=connection)
        answer = self._service.run(asyncio.wait_for(asked, WAIT_S))
        assert answer is not None
        assert answer.opaque
        return answer

    def tell(self, code: int, fields: Mapping[str, object] | None = None, body: bytes = b"") -> None:
        """Send one request one way."""
        assert self._service.run(self.start(code, fields, body, one_way=True)) is None


def groups_of(service: ServedApp) -> ClientGroups:
    """Return groups without members on the service's event loop."""

    async def make() -> ClientGroups:
        return ClientGroups()

    return service.run(make())


def commits_of(service: ServedApp, interval_s: float = 0.01) -> OffsetCommits:
    """Return commits of the service's groups."""
    return OffsetCommits(service.state.groups, interval_s=interval_s)


def consumer(group: str = "g", *subscriptions: SubscriptionData, actively: bool = False) -> ConsumerData:
    """Return a consumer of a heartbeat; the default subscribes all of `orders`."""
    kind = ConsumeType.CONSUME_ACTIVELY if actively else ConsumeType.CONSUME_PASSIVELY
    return ConsumerData(
        group, kind, MessageModel.CLUSTERING, "", subscriptions or (SubscriptionData("orders", "*", version=5),)
    )


def join(service: ServedApp, groups: ClientGroups, one: ConsumerData, client_id: str = "c1") -> FakeConnection:
    """Let a client of a connection of its own send a heartbeat."""
    connection = FakeConnection()

    async def heard() -> None:
        groups.heard(cast(Any, connection), client_id, one)

    service.run(heard())
    return connection
