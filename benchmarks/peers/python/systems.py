"""The compared Python clients, each with its server, and the durability of an acknowledgement."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.peers.figures import BARE, OURS, OURS_GRPC
from benchmarks.peers.peer import Flush


class System(NamedTuple):
    """A Python client and its server.

    server       a name in servers.SERVERS
    client       module and class in benchmarks.peers.python.clients
    if_sync, if_async  state of a message when its sender has the answer, in each flush mode
    """

    name: str
    title: str
    server: str
    client: str
    if_sync: str
    if_async: str

    def durability(self, flush: Flush) -> str:
        """Return the state of a message when its sender has the answer."""
        return self.if_sync if flush is Flush.SYNC else self.if_async


class Product(NamedTuple):
    """A name and a title, for goals that no single system decides."""

    name: str
    title: str


_OURS = ("flush mode sync: on disk before the answer", "flush mode async: in the page cache, on disk within 500 ms")
_KAFKA = ("flush.messages=1: on disk before the answer", "Kafka's default: in the page cache")
_NATS = (
    "JetStream, sync_interval always: on disk before the answer",
    "JetStream, default sync_interval: in the page cache, on disk within 2 min",
)
_REDIS = (
    "appendfsync always: on disk before the answer",
    "appendfsync everysec: in the page cache, on disk within a second or two",
)
BEST = Product("best", "best peer")  # the best of the other clients, pair by pair
TIDEMARK = System(OURS, "Tidemark", "tidemark", "tidemark_client.Remoting", *_OURS)
TIDEMARK_GRPC = System(OURS_GRPC, "Tidemark, gRPC", "tidemark", "tidemark_client.Grpc", *_OURS)
CONFLUENT = System("confluent-kafka", "confluent-kafka", "kafka", "confluent_client.ConfluentKafka", *_KAFKA)
AIOKAFKA = System("aiokafka", "aiokafka", "kafka", "aiokafka_client.AioKafka", *_KAFKA)
NATS = System("nats-py", "nats-py", "nats", "nats_client.Nats", *_NATS)
REDIS = System("redis-py", "redis-py", "redis", "redis_client.RedisStream", *_REDIS)
BARE_PYTHON = System(BARE, "bare Python", "bare", "bare_client.Bare", "on disk before the answer", "in the page cache")
PEERS = (CONFLUENT, AIOKAFKA, NATS, REDIS)
SYSTEMS = (TIDEMARK, TIDEMARK_GRPC, *PEERS, BARE_PYTHON)
