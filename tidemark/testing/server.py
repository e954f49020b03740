"""TidemarkServer: the three services of a new store, without Spark, for the tests of a program."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from tidemark.client import AsyncConsumer, AsyncProducer, Consumer, Producer, Query
from tidemark.errors import UnavailableError
from tidemark.local.local_stack import LocalStack
from tidemark.settings.engine import Engine

_POLL_S = 0.01


class TidemarkServer:
    """Writer, pipeline and query service on free ports of this machine; `with` starts and stops them.

    The pipeline runs without Spark and Java. Needs `tidemark[all]`, or `tidemark[client,writer,query]`.

    data      folder of the store; None: a temporary one, which is removed at the end
    settings  further settings of the services, by their TIDEMARK_ names

    Raises at the start:
        ServiceDiedError: a service ended by itself; its message names the service's log.
        UnavailableError: a service is not healthy within 600 s.
    """

    def __init__(self, data: Path | None = None, *, settings: Mapping[str, str] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tidemark-") if data is None else None
        self.stack = LocalStack(
            Path(self._folder.name) / "store" if self._folder is not None else data or Path(),
            environment={"TIDEMARK_PIPELINE": Engine.PLAIN, **(settings or {})},
        )

    @property
    def writer_address(self) -> str:
        """Return the writer's address, as `Producer(address)` and TIDEMARK_WRITER_ADDRESS take it."""
        return self.stack.writer_address

    @property
    def query_url(self) -> str:
        """Return the query service's URL, as `Consumer(url=…)` and TIDEMARK_QUERY_URL take it."""
        return self.stack.query_url

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which a program under test finds the services by itself."""
        return {"TIDEMARK_WRITER_ADDRESS": self.writer_address, "TIDEMARK_QUERY_URL": self.query_url}

    def producer(self, **options: Any) -> Producer:
        """Return a producer; *options* are Producer's. The caller closes it."""
        return Producer(self.writer_address, **options)

    def consumer(self, topics: str | Iterable[str], **options: Any) -> Consumer:
        """Return a consumer of *topics*; *options* are Consumer's. The caller closes it."""
        return Consumer(topics, url=self.query_url, **options)

    def async_producer(self, **options: Any) -> AsyncProducer:
        """Return a producer for asyncio; *options* are AsyncProducer's. The caller closes it."""
        return AsyncProducer(self.writer_address, **options)

    def async_consumer(self, topics: str | Iterable[str], **options: Any) -> AsyncConsumer:
        """Return a consumer for asyncio; *options* are AsyncConsumer's. The caller closes it."""
        return AsyncConsumer(topics, url=self.query_url, **options)

    def query(self, **options: Any) -> Query:
        """Return a client of the REST API; *options* are Query's. The caller closes it."""
        return Query(self.query_url, **options)

    def wait_until_visible(self, timeout_s: float = 30.0) -> None:
        """Return when everything that was acknowledged before the call can be read.

        UnavailableError: it takes longer than *timeout_s*.
        """
        deadline = time.monotonic() + timeout_s
        with self.query() as query:
            committed: int = query.watermark()["committed_offset"]
            while (visible := query.watermark()["watermark"]["physical_offset"]) < committed:
                self.stack.check()
                if time.monotonic() > deadline:
                    raise UnavailableError(f"{committed - visible} bytes are not visible after {timeout_s} s")
                time.sleep(_POLL_S)

    def __enter__(self) -> Self:
        self.stack.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.stop()
        if self._folder is not None:
            self._folder.cleanup()
