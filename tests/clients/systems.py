"""The systems under test: a real name server and broker of Apache RocketMQ, and a stack of Tidemark."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.conformance.broker.file_sizes import FileSizes
from tests.conformance.broker.real_broker import RealBroker
from tidemark.client import Topics
from tidemark.local.local_stack import LocalStack
from tidemark.tls.credentials import Credentials

BROKER, TIDEMARK = "broker", "tidemark"
_REFUSED = {"rejectTransactionMessage": "true"}  # the broker's refusal of transactions is the one to compare
_NO_NEW_TOPICS = {"TIDEMARK_AUTO_CREATE_TOPICS": "false"}  # as at the broker of these tests
_SIZES = FileSizes(commit_log=64 << 20, consume_queue=200_000, index_slots=50_000, index_entries=200_000)


class System(ABC):
    """A system to which clients connect by *name_server*. `with` starts and ends it."""

    name_server: str
    send_port: int
    read_port: int

    @abstractmethod
    def __enter__(self) -> Self:
        """Start, and return when it serves."""

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """End everything."""

    @abstractmethod
    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic*. Safe from any thread."""

    @abstractmethod
    def kill(self, service: str) -> None:
        """Kill a service of Tidemark with SIGKILL; a broker is all of them."""

    @abstractmethod
    def start_again(self, service: str) -> None:
        """Start a killed service, and return when it serves."""


class BrokerSystem(System):
    """A real broker that creates no topics by itself and refuses transactions; other settings are its defaults."""

    def __init__(
        self, folder: Path, *, sizes: FileSizes = _SIZES, settings: Mapping[str, object] | None = None
    ) -> None:
        self._broker = RealBroker(
            folder / "store", folder / "work", sizes=sizes, settings={**_REFUSED, **(settings or {})}
        )
        self._lock = threading.Lock()  # the broker's client serves one thread at a time

    def __enter__(self) -> Self:
        self._broker.__enter__()
        self.name_server = self._broker.name_server_address
        self.send_port = self.read_port = _port(self._broker.address)
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.close()

    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic*, and wait until the name server knows it."""
        with self._lock:
            self._broker.client.create_topic(topic, queues=queues)

    def kill(self, service: str) -> None:
        """Kill the broker."""
        self._broker.kill()

    def start_again(self, service: str) -> None:
        """Start the broker."""
        self._broker.start()


class TidemarkSystem(System):
    """Writer, pipeline and query service, which create no topics by themselves.

    by_writer: the writer is the name server, otherwise the query service
    environment: further settings
    """

    def __init__(
        self,
        folder: Path,
        *,
        by_writer: bool,
        environment: Mapping[str, str] | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._stack = LocalStack(folder / "store", environment={**_NO_NEW_TOPICS, **(environment or {})})
        self._by_writer = by_writer
        self._credentials = credentials

    def __enter__(self) -> Self:
        name = "writer_remoting_address" if self._by_writer else "query_remoting_address"
        self.name_server = getattr(self._stack, name)
        self.send_port = _port(self._stack.writer_remoting_address)
        self.read_port = _port(self._stack.query_remoting_address)
        self._stack.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.stop()

    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic*."""
        with Topics(self._stack.writer_address, credentials=self._credentials) as topics:
            topics.create(topic, queues=queues)

    def kill(self, service: str) -> None:
        """Kill the service."""
        self._stack.services[service].kill()

    def start_again(self, service: str) -> None:
        """Start the service."""
        self._stack.start_service(service)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
