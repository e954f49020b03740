"""Kafka: one KRaft node with the heap and garbage collector of bin/kafka-server-start.sh."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Self

from benchmarks.peers.peer import Flush, Peer
from benchmarks.peers.ports import free_run
from benchmarks.peers.server import Server
from benchmarks.peers.toolchain import KAFKA

JVM_OPTIONS = (  # bin/kafka-server-start.sh and bin/kafka-run-class.sh
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
FLUSH_MESSAGES = {Flush.SYNC: 1, Flush.ASYNC: 0}  # of each topic; 0: Kafka's default, the page cache
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


class Kafka(Peer):
    """A Kafka node in *folder*. flush: decides flush.messages of its topics."""

    product = KAFKA

    def __init__(self, folder: Path, flush: Flush) -> None:
        super().__init__(folder, flush)
        self._port = free_run(2)
        self._server: Server | None = None
        self._conf = self.folder / "server.properties"
        self._conf.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))

    @property
    def store(self) -> Path:
        """The folder of log.dirs."""
        return self.folder / "data"

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def server(self) -> Server:
        """The node's process."""
        assert self._server is not None, "it does not run"
        return self._server

    @property
    def controller(self) -> str:
        """host:port for other nodes."""
        return f"127.0.0.1:{self._port + 1}"

    def _settings(self) -> dict[str, object]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{self.controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{self.controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.store,
            "offsets.topic.replication.factor": 1,
            "log.retention.ms": -1,
        }

    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic* with the flush mode of this node."""
        self.load("CreateTopics", topic=topic, queues=queues, flush_messages=FLUSH_MESSAGES[self.flush])

    def start(self) -> Self:
        """Start the node and return when its port is open; clients wait until it is ready."""
        if not self.store.exists():
            self._format()
        command = self.toolchain.java("kafka.Kafka", str(self._conf), options=JVM_OPTIONS)
        self._server = Server(command, self.folder / "kafka.out")
        self._server.wait_until(self._is_open)
        return self

    def _format(self) -> None:
        command = self.toolchain.java(
            "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._conf), options=()
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _is_open(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def stop(self) -> None:
        """Stop the node with a clean shutdown."""
        server, self._server = self.server, None
        server.stop()

    def kill(self) -> None:
        """Kill the node with SIGKILL."""
        server, self._server = self.server, None
        server.kill()

    def close(self) -> None:
        """Kill the node if it still runs."""
        if self._server is not None:
            self.kill()

    def _client_properties(self) -> dict[str, object]:
        return {"server": self.address}
