"""The runner itself: a broker keeps the messages of RocketMQ's client over a stop and a kill."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from .real_broker import RealBroker
from .rocket_client import RocketError, ToSend

pytestmark = [pytest.mark.conformance, pytest.mark.exhaustive]


def test_two_concurrent_brokers_keep_their_messages(tmp_path: Path) -> None:
    """Each has its own ports; one is stopped, one is killed, and both come back with every message."""
    with RealBroker(tmp_path / "a", tmp_path / "work-a") as a, RealBroker(tmp_path / "b", tmp_path / "work-b") as b:
        for broker in (a, b):
            broker.client.create_topic("orders", queues=2)
            broker.client.create_topic("packed", queues=1, batch=True)
            message = ToSend(b"single", tag="A", keys=("k1", "k2"), properties={"where": "there"}, flag=7)
            assert broker.client.send("orders", 1, message)["queue_offset"] == 0
            sent = broker.client.send_batch("packed", 0, [ToSend(b"%d" % i, keys=(f"n{i}",)) for i in range(10)])
            assert sent["status"] == "SEND_OK"
            broker.client.send_in_transaction("orders", ToSend(b"kept"), commit=True)
            broker.client.send_in_transaction("orders", ToSend(b"dropped"), commit=False)
        with pytest.raises(RocketError):
            a.client.send("nowhere", 0, ToSend(b"x"))
        a.stop()
        assert not (tmp_path / "a" / "abort").exists()
        b.kill()
        assert (tmp_path / "b" / "abort").exists()
        for broker in (a.start(), b.start()):
            broker.client.wait_until_known("orders")
            queues = broker.client.queues("orders")
            told = [message for queue in queues for message in broker.client.read_queue("orders", queue)]
            bodies = {base64.b64decode(message["body"]) for message in told}
            assert bodies == {b"single", b"kept"}
            packed = broker.client.pull("packed", 0, 5)
            assert [message["queue_offset"] for message in packed["messages"]] == list(range(10))
            single = next(message for message in told if message["flag"] == 7)
            assert single["properties"]["where"] == "there"
            assert broker.client.query_key("orders", "k2") == [single["physical_offset"]]
            assert broker.client.query_key("orders", "k3") == []
            assert broker.client.view("orders", single["offset_message_id"])["body"] == single["body"]
            assert broker.client.offset_by_time("orders", 1, single["store_timestamp_ms"]) == single["queue_offset"]
