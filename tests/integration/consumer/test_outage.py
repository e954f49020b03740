"""The query service goes away and comes back while a consumer reads."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.built_store import BuiltStore
from tests.integration.consumer.test_consumer import take
from tests.query_server import serve_query
from tidemark.client import Consumer, TopicQueue


def test_a_consumer_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Where it was, without a word to its user."""
    store = BuiltStore(tmp_path)
    store.topic("orders")
    store.append("orders", b"before")
    store.publish()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with Consumer(queues=[TopicQueue("orders", 0)], url=f"http://127.0.0.1:{port}") as consumer:
        with serve_query(tmp_path, port=port):
            assert [message.body for message in take(consumer, 1)] == [b"before"]
            consumer.poll(0.1)
        assert consumer.poll(0.3) == []
        store.append("orders", b"after")
        store.publish()
        with serve_query(tmp_path, port=port):
            assert [message.body for message in take(consumer, 1)] == [b"after"]


def test_a_member_closes_without_its_service(tmp_path: Path) -> None:
    """It cannot say that it leaves; its session ends by itself."""
    store = BuiltStore(tmp_path)
    store.topic("orders")
    store.append("orders", b"a")
    store.publish()
    with serve_query(tmp_path) as client:
        consumer = Consumer("orders", group="billing", url=str(client.base_url))
        assert [message.body for message in take(consumer, 1)] == [b"a"]
    consumer.close()
