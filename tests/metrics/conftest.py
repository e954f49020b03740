"""One stack whose services serve metrics, under load until the last test."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from scripts.promtool import tool
from tests.fixed_ports import fixed_port
from tests.metrics.scrape import WATCHED, Watched
from tidemark.client import Producer
from tidemark.local.local_stack import LocalStack

_PAUSE_S = 0.02
_GROUP = "/v1/groups/billing/topics/orders/queues/0/offset"
_PULL = "/v1/topics/orders/queues/0/messages"
_MESSAGE = {"messages": [{"body": "x", "body_encoding": "utf8"}], "queue_id": 0}


@pytest.fixture(scope="session")
def promtool() -> str:
    """Return the program; download it if it is missing."""
    return str(tool("promtool"))


@pytest.fixture(scope="session")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Run writer, pipeline and query with short epochs, and yield the addresses of their metrics."""
    ports = {name: fixed_port() for name in ("writer", "pipeline")}
    environment = {
        **{f"TIDEMARK_{name.upper()}_METRICS_LISTEN": f"127.0.0.1:{port}" for name, port in ports.items()},
        "TIDEMARK_EPOCH_MS": "1000",
        "TIDEMARK_AUTO_CREATE_TOPICS": "false",
    }
    with LocalStack(tmp_path_factory.mktemp("watched") / "data", environment=environment) as stack:
        addresses = {**{name: f"127.0.0.1:{port}" for name, port in ports.items()}, "query": stack.query_url[7:]}
        assert tuple(addresses) == WATCHED
        stop = threading.Event()
        load = threading.Thread(target=_load, args=(stack, stop))
        load.start()
        try:
            yield Watched(addresses)
        finally:
            stop.set()
            load.join()


def _load(stack: LocalStack, stop: threading.Event) -> None:
    """Append, with some refusals, pull, and commit for a group."""
    with Producer(stack.writer_address) as producer, httpx.Client(base_url=stack.query_url, timeout=30) as client:
        producer.topics.create("orders", queues=1)
        for number in range(1_000_000):
            if stop.is_set():
                return
            producer.send("orders", b"message %d" % number, queue_id=0)
            if number % 20 == 0:
                refused = client.post("/v1/topics/nobody-made-this/messages", json=_MESSAGE)
                assert refused.status_code == 404
                client.get(_PULL, params={"offset": "earliest", "max_messages": 10})
                client.put(_GROUP, json={"offset": number // 2})
            time.sleep(_PAUSE_S)
