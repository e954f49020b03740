"""RocketMQ: a broker with RocketMQ's own file sizes, tuned according to its scripts and documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from benchmarks.peers.broker import Broker
from benchmarks.peers.peer import Flush, Peer
from benchmarks.peers.server import Server
from benchmarks.peers.toolchain import ROCKETMQ

# As in bin/runbroker.sh, except its heap of 8 GB and -XX:+AlwaysPreTouch, which are for a dedicated machine: 2 GB are
# never full here, the rest serves as page cache, and AlwaysPreTouch would only slow down the start.
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
# All other settings are the defaults of 5.3.3: no transient store pool (it answers before the page cache has the
# message), key index on, reentrant lock for appends, asynchronous answers of the send threads, files of 1 GiB, not
# warmed.
SETTINGS: Mapping[str, object] = {"brokerClusterName": "bench", "transientStorePoolEnable": "false"}
FLUSH = {Flush.SYNC: "SYNC_FLUSH", Flush.ASYNC: "ASYNC_FLUSH"}


class RocketMQ(Peer):
    """A RocketMQ broker in *folder*. settings: for its broker.conf, in addition to SETTINGS."""

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
        """The folder of storePathRootDir."""
        return self._broker.store

    @property
    def server(self) -> Server:
        """The broker's process."""
        return self._broker.server

    @property
    def log(self) -> Path:
        """The log of the broker's store."""
        return self._broker.work / "logs" / "rocketmqlogs" / "store.log"

    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic* with queues of 20-byte units."""
        self.create_topics(topic, queues)

    def create_topics(self, topic: str, queues: int, *, topics: int = 1, batch: bool = False) -> None:
        """Create *topic*, or for *topics* above 1 the topics topic-0 and so on. batch: with queue.type=BatchCQ."""
        kind = "BatchCQ" if batch else "SimpleCQ"
        self.load("CreateTopics", topic=topic, queues=queues, topics=topics, type=kind)

    def start(self) -> Self:
        """Start the name server, unless it runs, and the broker."""
        self._broker.start()
        return self

    def stop(self) -> None:
        """Stop the broker with a clean shutdown; the name server keeps running."""
        self._broker.stop()

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self._broker.kill()

    def close(self) -> None:
        """End broker and name server."""
        self._broker.close()

    def _client_properties(self) -> dict[str, object]:
        return {
            "server": self._broker.name_server_address,
            "broker": self._broker.address,
            "user.home": self.folder,  # the client's logs
        }
