"""Two stores for a test, each with its services."""

from __future__ import annotations

import itertools

from tidemark.testing.server import TidemarkServer

_names = itertools.count()


class Pair:
    """Two stores, and the name of a topic that no other test uses."""

    def __init__(self, servers: list[TidemarkServer]) -> None:
        self.servers = servers
        self.topic = f"topic{next(_names)}"
        self.urls = [server.query_url for server in servers]
        self.writers = ",".join(server.writer_address for server in servers)

    def send(self, store: int, *bodies: bytes, queue_id: int = 0, topic: str | None = None) -> None:
        with self.servers[store].producer() as producer:
            for body in bodies:
                producer.send(topic or self.topic, body, queue_id=queue_id)
        self.servers[store].wait_until_visible()
