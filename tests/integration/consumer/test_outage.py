"""The query service goes away and comes back while a consumer reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.fixed_ports import fixed_port
from tests.integration.consumer.test_consumer import take
from tests.query_server import serve_query
from tidemark.client import Consumer, TopicQueue


@pytest.mark.parametrize("queues", [1, 100], ids=["one queue", "many in a request"])
@pytest.mark.usefixtures("wire")
def test_a_consumer_continues_after_a_service_restart(tmp_path: Path, queues: int) -> None:
    """It continues at its position, without an error to its user."""
    store = BuiltStore(tmp_path)
    store.topic("orders", queues=queues)
    store.append("orders", b"before")
    store.publish()
    port, remoting = fixed_port(), f"127.0.0.1:{fixed_port()}"
    everything = [TopicQueue("orders", queue_id) for queue_id in range(queues)]
    with Consumer(queues=everything, url=f"http://127.0.0.1:{port}") as consumer:
        with serve_query(tmp_path, port=port, query_remoting_listen=remoting):
            assert [message.body for message in take(consumer, 1)] == [b"before"]
            consumer.poll(0.1)
        assert consumer.poll(0.3) == []
        for queue_id in range(queues):
            store.append("orders", b"after %d" % queue_id, queue_id=queue_id)
        store.publish()
        with serve_query(tmp_path, port=port, query_remoting_listen=remoting):
            after = sorted(message.body for message in take(consumer, queues))
            assert after == sorted(b"after %d" % queue_id for queue_id in range(queues))
            assert consumer.poll(0.2) == []


def test_a_member_closes_without_its_service(tmp_path: Path) -> None:
    """It cannot leave the group; its session ends by timeout."""
    store = BuiltStore(tmp_path)
    store.topic("orders")
    store.append("orders", b"a")
    store.publish()
    with serve_query(tmp_path) as client:
        consumer = Consumer("orders", group="billing", url=str(client.base_url))
        assert [message.body for message in take(consumer, 1)] == [b"a"]
    consumer.close()
