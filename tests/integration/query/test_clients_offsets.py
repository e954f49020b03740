"""Offsets of clients that do not wait for answers: RocketMQ's Go client commits so, also in its last moment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.indexer.query.groups.consumer_groups import ConsumerGroups
from tests.built_store import BuiltStore
from tests.fixed_ports import fixed_port
from tests.query_server import serve_query
from tests.remoting_client import RemotingClient
from tidemark.remoting import RequestCode

pytestmark = pytest.mark.integration
QUEUE = {"consumerGroup": "g", "topic": "orders", "queueId": "0"}
SLOW_S = 0.3


def test_an_offset_is_known_at_once_and_kept_although_its_client_has_gone(
    built: BuiltStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = ConsumerGroups.set_for_clients

    async def write_slowly(*arguments: Any, **more: Any) -> None:
        await asyncio.sleep(SLOW_S)
        await write(*arguments, **more)

    monkeypatch.setattr(ConsumerGroups, "set_for_clients", write_slowly)

    def ask() -> str:
        with RemotingClient(port) as client:
            return client.call(RequestCode.QUERY_CONSUMER_OFFSET, QUEUE).fields["offset"]

    port = fixed_port()
    settings: dict[str, Any] = {"query_remoting_listen": f"127.0.0.1:{port}"}
    with serve_query(built.root, **settings):
        with RemotingClient(port) as client:
            assert client.call(RequestCode.QUERY_CONSUMER_OFFSET, QUEUE).fields["offset"] == "0"
            client.send(RequestCode.UPDATE_CONSUMER_OFFSET, {**QUEUE, "commitOffset": "4"})
        assert ask() == "4"
    with serve_query(built.root, **settings):
        assert ask() == "4"
