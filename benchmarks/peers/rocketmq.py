"""RocketMQ: a broker with RocketMQ's own sizes of files, tuned as its scripts and documents say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from benchmarks.peers.broker import Broker
from benchmarks.peers.peer import Flush, Peer
from benchmarks.peers.server import Server
from benchmarks.peers.toolchain import ROCKETMQ

# bin/runbroker.sh, but for two things. Its heap of 8 GB and -XX:+AlwaysPreTouch are for a machine of its own: 2 GB are
# never full here, the rest serves as page cache, and touching them first would only make its start slower.
JVM_OPTIONS = (
    "-Xms2g",
    "-Xmx2g",
    "-XX:+UseG1GC",
    "-XX:G1HeapRegionSize=16m",
    "-XX:G1ReservePercent=25",
    "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:SoftRefLRUPolicyMSPerMB=0",
    "-XX:-OmitStackTraceInFastThrow",
    "-XX:MaxDirectMemorySize=4g",
)
# Everything else is 5.3.3's default: no transient store pool (it answers before the page cache has the message), key
# index on, reentrant lock for appends, asynchronous answers of the send threads, files of 1 GiB, not warmed.
SETTINGS: Mapping[str, object] = {"brokerClusterName": "bench", "transientStorePoolEnable": "false"}
FLUSH = {Flush.SYNC: "SYNC_FLUSH", Flush.ASYNC: "ASYNC_FLUSH"}


class RocketMQ(Peer):
    """In *folder*; *settings* of its broker.conf besides the ones above."""

    product = ROCKETMQ

    def __init__(self, folder: Path, flush: Flush, *, settings: Mapping[str, object] | None = None) -> None:
        super().__init__(folder, flush)
        self._broker = Broker(
            self.toolchain,
            self.folder / "store",
            self.folder / "broker",
            settings={**SETTINGS, "flushDiskType": FLUSH[flush], **(settings or {})},
            options=JVM_OPTIONS,
        )

    @property
    def store(self) -> Path:
        """storePathRootDir."""
        return self._broker.store

    @property
    def server(self) -> Server:
        """The broker."""
        return self._broker.server

    @property
    def log(self) -> Path:
        """What the broker's store logs."""
        return self._broker.work / "logs" / "rocketmqlogs" / "store.log"

    def create_topic(self, topic: str, queues: int) -> None:
        """Of 20-byte units."""
        self.create_topics(topic, queues)

    def create_topics(self, topic: str, queues: int, *, topics: int = 1, batch: bool = False) -> None:
        """topics: above 1, so many, topic-0 …; batch: a batch is stored as one record (queue.type=BatchCQ)."""
        kind = "BatchCQ" if batch else "SimpleCQ"
        self.load("CreateTopics", topic=topic, queues=queues, topics=topics, type=kind)

    def start(self) -> Self:
        """The name server first, unless it runs."""
        self._broker.start()
        return self

    def stop(self) -> None:
        """A clean shutdown of the broker; the name server goes on."""
        self._broker.stop()

    def kill(self) -> None:
        """kill -9 of the broker."""
        self._broker.kill()

    def close(self) -> None:
        """End both."""
        self._broker.close()

    def _client_properties(self) -> dict[str, object]:
        return {
            "server": self._broker.name_server_address,
            "broker": self._broker.address,
            "user.home": self.folder,  # the client's logs
        }
