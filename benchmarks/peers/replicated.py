"""RocketMQ and Kafka with one replica: two brokers on this machine, whose appends wait for both."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

import psutil

from benchmarks.peers.broker import Broker
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Flush
from benchmarks.peers.rocketmq import FLUSH, JVM_OPTIONS, SETTINGS, RocketMQ
from benchmarks.peers.server import START_TIMEOUT_S

_POLL_S = 0.1
_MASTER = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2, "slaveTimeout": 60_000}
_SLAVE = {"brokerRole": "SLAVE", "brokerId": 1}
_IN_SYNC = {"default.replication.factor": 2, "min.insync.replicas": 2}


class ReplicatedRocketMQ(RocketMQ):
    """A SYNC_MASTER that waits for its slave (inSyncReplicas=2)."""

    def __init__(self, folder: Path, flush: Flush) -> None:
        super().__init__(folder, flush, settings=_MASTER)
        self._slave = Broker(
            self.toolchain,
            self.folder / "slave-store",
            self.folder / "slave",
            settings={**SETTINGS, "flushDiskType": FLUSH[flush], **_SLAVE},
            options=JVM_OPTIONS,
            name_server=self._broker.name_server_address,
        )

    def start(self) -> Self:
        """Start master and slave, and return when the slave is connected."""
        super().start()
        self._slave.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._has_slave():
            assert time.monotonic() < deadline, "the slave does not connect"
            time.sleep(_POLL_S)
        return self

    def _has_slave(self) -> bool:
        """Return True if a connection to the master's port for slaves is open."""
        connections = psutil.Process(self.server.pid).net_connections("tcp")
        return any(
            one.laddr.port == self._broker.ports[2] and one.status == psutil.CONN_ESTABLISHED for one in connections
        )

    def close(self) -> None:
        """End both brokers and the name server."""
        self._slave.close()
        super().close()


class ReplicatedKafka(Kafka):
    """Two nodes, of which the first is the controller, too. Topics have two replicas, and both must be in sync."""

    def __init__(self, folder: Path, flush: Flush) -> None:
        super().__init__(folder, flush)
        self._other = _SecondNode(self.folder / "other", flush, self)

    def _settings(self) -> dict[str, object]:
        return {**super()._settings(), **_IN_SYNC}

    def start(self) -> Self:
        """Start both nodes, and return when both ports are open."""
        super().start()
        self._other.start()
        return self

    def close(self) -> None:
        """Kill both nodes."""
        self._other.close()
        super().close()


class _SecondNode(Kafka):
    """A node without a controller."""

    def __init__(self, folder: Path, flush: Flush, first: Kafka) -> None:
        self._first = first
        super().__init__(folder, flush)

    def _settings(self) -> dict[str, object]:
        return {
            **super()._settings(),
            **_IN_SYNC,
            "process.roles": "broker",
            "node.id": 2,
            "controller.quorum.voters": f"1@{self._first.controller}",
            "listeners": f"PLAINTEXT://{self.address}",
        }
