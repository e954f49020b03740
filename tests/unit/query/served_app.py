"""The application of the query service over a store that a test writes, called in this process without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from services.indexer.query.app import create_app
from services.indexer.query.config import QuerySettings
from services.indexer.query.state.service_state import ServiceState
from tests.built_store import BuiltStore
from tidemark.access.guard import Guard
from tidemark.tracing.exporting import Tracing

T = TypeVar("T")
WAIT_S = 30.0


class ServedApp:
    """One application and a client of it, on an event loop of its own that runs only within a call.

    guard, tracing  as for create_app
    settings        fields of QuerySettings
    """

    def __init__(
        self, built: BuiltStore, *, guard: Guard | None = None, tracing: Tracing | None = None, **settings: Any
    ) -> None:
        self._runner = asyncio.Runner()
        self.app = create_app(QuerySettings(store_root=built.root, **settings), None, guard, tracing)
        self.state: ServiceState = self.app.state.service
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://query")
        self.run(self._start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.run(self.client.aclose())
        self.run(self.state.close())
        self._runner.close()

    async def _start(self) -> None:
        self.state.watcher.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the outcome of *work* on the application's event loop."""
        return self._runner.run(work)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Return the answer to one request."""
        return self.run(self.client.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Return the answer to a GET."""
        return self.ask("GET", path, **more)

    def ask_and_meanwhile(self, act: Callable[[], object], method: str, path: str, **more: Any) -> httpx.Response:
        """Return the answer to a request that waits, with *act* called once it waits."""

        async def both() -> httpx.Response:
            async with asyncio.timeout(WAIT_S):
                asked = asyncio.create_task(self.client.request(method, path, **more))
                while not self.state.watcher.waiting:
                    assert not asked.done(), asked.result().text
                    await asyncio.sleep(0)
                act()
                return await asked

        return self.run(both())
