"""The systems under test: a real name server and broker of Apache RocketMQ, and a stack of Tidemark."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from tests.conformance.broker.file_sizes import FileSizes
from tests.conformance.broker.real_broker import RealBroker
from tidemark.client import Topics
from tidemark.local.local_stack import LocalStack

BROKER, TIDEMARK = "broker", "tidemark"
_REFUSED = {"rejectTransactionMessage": "true"}  # the broker's refusal of transactions is the one to compare
_SIZES = FileSizes(commit_log=64 << 20, consume_queue=200_000, index_slots=50_000, index_entries=200_000)


class System(ABC):
    """A system to which clients connect by *name_server*. `with` starts and ends it."""

    name_server: str

    @abstractmethod
    def __enter__(self) -> Self:
        """Start, and return when it serves."""

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """End everything."""

    @abstractmethod
    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic*. Safe from any thread."""


class BrokerSystem(System):
    """A real broker that creates no topics by itself and refuses transactions; other settings are its defaults."""

    def __init__(self, folder: Path) -> None:
        self._broker = RealBroker(folder / "store", folder / "work", sizes=_SIZES, settings=_REFUSED)
        self._lock = threading.Lock()  # the broker's client serves one thread at a time

    def __enter__(self) -> Self:
        self._broker.__enter__()
        self.name_server = self._broker.name_server_address
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.close()

    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic*, and wait until the name server knows it."""
        with self._lock:
            self._broker.client.create_topic(topic, queues=queues)


class TidemarkSystem(System):
    """Writer, pipeline and query service. by_writer: the writer is the name server, otherwise the query service."""

    def __init__(self, folder: Path, *, by_writer: bool) -> None:
        self._stack = LocalStack(folder / "store")
        self._by_writer = by_writer

    def __enter__(self) -> Self:
        name = "writer_remoting_address" if self._by_writer else "query_remoting_address"
        self.name_server = getattr(self._stack, name)
        self._stack.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.stop()

    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic*."""
        with Topics(self._stack.writer_address) as topics:
            topics.create(topic, queues=queues)
