"""The writer without its network: the server's own parts on an event loop of this thread, called as gRPC calls them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from services.writer.composition import compose
from services.writer.config import WriterSettings
from services.writer.log.open_store import close_store, open_store, release_store
from services.writer.rpc.access_interceptor import CALLER
from tests.integration.writer.harness import ADVERTISED
from tidemark.access.guard import Guard
from tidemark.access.identity import Presented
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import StoreError
from tidemark.store.storage import DiskStorage, Storage
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1 import topics_pb2

SEGMENT_SIZE = 8192


class _Context:
    """The parts of a gRPC context that the service uses."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:54321"


_CONTEXT: Any = _Context()


class InProcessWriter:
    """A writer that is opened at once; closed in order by `close`, or left as by a kill by `abandon`."""

    def __init__(self, root: Path, storage: Storage | None = None, **settings: Any) -> None:
        self.settings = self.settings_of(root, **settings)
        self.store = open_store(self.settings, storage or DiskStorage())
        self._runner = asyncio.Runner()
        try:
            self._runner.run(self._start())
        except BaseException:
            release_store(self.store)
            self._runner.close()
            raise

    @staticmethod
    def settings_of(root: Path, **settings: Any) -> WriterSettings:
        """Return the given settings with small defaults."""
        given = {"advertised_address": ADVERTISED, "min_free_disk_bytes": 0, "default_queues": 1, **settings}
        return WriterSettings(store_root=root, **given)

    async def _start(self) -> None:
        self._guard = Guard(None, RateLimits(), None)
        self._parts = compose(self.settings, self.store, port=0, guard=self._guard, on_failure=lambda: None)
        self.commit_log = self._parts.commit_log
        self._service = self._parts.commit_log_service
        self._topics = self._parts.topic_service
        self.commit_log.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def append(self, *requests: pb.AppendBatchRequest) -> list[pb.AppendBatchResponse | StoreError]:
        """Append all concurrently; return the answer to each."""

        async def all_of_them() -> list[pb.AppendBatchResponse | StoreError]:
            CALLER.set(self._guard.admit(Presented(None, None), address="127.0.0.1", action="AppendBatch"))
            calls = [self._service.AppendBatch(request, _CONTEXT) for request in requests]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            for answer in answers:
                if isinstance(answer, BaseException) and not isinstance(answer, StoreError):
                    raise answer
            return answers  # type: ignore[return-value]

        return self._runner.run(all_of_them())

    def create_topic(self, name: str, **fields: Any) -> None:
        self._runner.run(self._topics.CreateTopic(topics_pb2.CreateTopicRequest(name=name, **fields), _CONTEXT))

    def delete_topic(self, name: str) -> None:
        self._runner.run(self._topics.DeleteTopic(topics_pb2.DeleteTopicRequest(name=name), _CONTEXT))

    def expire(self) -> int:
        """Run retention once; return the number of deleted log files."""
        return self._parts.retention.run_once()

    def close(self) -> None:
        """Stop in order."""
        self._stop_threads()
        close_store(self.store, self.commit_log.snapshot())

    def abandon(self) -> None:
        """End without writes to the disk, except those in progress."""
        self._stop_threads()
        release_store(self.store)

    def _stop_threads(self) -> None:
        async def stop() -> None:
            self._service.close()
            await self.commit_log.close()
            self._parts.reader.close()

        self._runner.run(stop())
        self._runner.close()
