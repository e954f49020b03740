"""The servers of the compared clients, each on loopback with a store in a folder of its own."""

from __future__ import annotations

import contextlib
import socket
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from benchmarks.bare_server import bare_server
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Flush
from benchmarks.peers.ports import free_run
from benchmarks.peers.python.environment import nats_server, redis_server
from benchmarks.peers.python.load import LATENCY, TOPIC, Load
from benchmarks.peers.python.protocol import Addresses
from benchmarks.peers.server import Running, Server
from benchmarks.stack import running
from services.indexer.pipeline.config import PipelineSettings

QUEUES = 4  # one for latencies
_LOOPBACK = "127.0.0.1"
_WARM_UP_S: float = PipelineSettings.model_fields["warm_up_ms"].default / 1000


class _Native(Running):
    """A server that is one program."""

    def __init__(self, folder: Path, flush: Flush) -> None:
        self.folder = folder.absolute()
        self.flush = flush
        self.port = free_run(1)
        self._server: Server | None = None

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"{_LOOPBACK}:{self.port}"

    @abstractmethod
    def _command(self) -> list[str]: ...

    def start(self) -> Self:
        """Start the program and return when its port is open."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = self._command()
        self._server = Server(command, self.folder / f"{Path(command[0]).name}.out")
        self._server.wait_until(self._is_open)
        return self

    def _is_open(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((_LOOPBACK, self.port)) == 0

    def close(self) -> None:
        """Kill the program."""
        if self._server is not None:
            self._server.kill()
            self._server = None


class NatsServer(_Native):
    """nats-server with JetStream in files."""

    def _command(self) -> list[str]:
        sync = "  sync_interval: always\n" if self.flush is Flush.SYNC else ""
        conf = self.folder / "nats.conf"
        conf.write_text(
            f"listen: {self.address}\njetstream {{\n  store_dir: {_quoted(self.folder / 'data')}\n{sync}}}\n"
        )
        return [str(nats_server()), "-c", str(conf)]


class RedisServer(_Native):
    """redis-server with an append-only file and without snapshots."""

    def _command(self) -> list[str]:
        settings = {
            "bind": _LOOPBACK,
            "port": self.port,
            "dir": self.folder,
            "appendonly": "yes",
            "appendfsync": "always" if self.flush is Flush.SYNC else "everysec",
            "save": "",
        }
        options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        return [str(redis_server()), *options]


def _quoted(path: Path) -> str:
    return f'"{path}"'


@contextlib.contextmanager
def tidemark(folder: Path, flush: Flush, _: Load) -> Iterator[Addresses]:
    """Run writer, pipeline and query service. The pipeline's first epochs, which are short to warm it up, are over."""
    with running(folder / "data", flush_mode=flush.value) as stack:
        time.sleep(_WARM_UP_S)
        yield {"writer": stack.writer_address, "query": stack.query_url}


@contextlib.contextmanager
def kafka(folder: Path, flush: Flush, load: Load) -> Iterator[Addresses]:
    """Run a Kafka node with the topic."""
    with Kafka(folder, flush) as node:
        node.create_topic(TOPIC, 1 if load.workload == LATENCY else QUEUES)
        yield {"kafka": node.address}


@contextlib.contextmanager
def nats(folder: Path, flush: Flush, _: Load) -> Iterator[Addresses]:
    """Run a nats-server."""
    with NatsServer(folder, flush) as server:
        yield {"nats": f"nats://{server.address}"}


@contextlib.contextmanager
def redis(folder: Path, flush: Flush, _: Load) -> Iterator[Addresses]:
    """Run a redis-server."""
    with RedisServer(folder, flush) as server:
        yield {"redis": server.address}


@contextlib.contextmanager
def bare(folder: Path, flush: Flush, _: Load) -> Iterator[Addresses]:
    """Run a bare log."""
    with bare_server("benchmarks.bare_log", str(folder / "log"), flush.value) as server:
        yield {"bare": server.address}


Serve = Callable[[Path, Flush, Load], contextlib.AbstractContextManager[Addresses]]
SERVERS: dict[str, Serve] = {"tidemark": tidemark, "kafka": kafka, "nats": nats, "redis": redis, "bare": bare}
