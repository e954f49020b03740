"""A writer in a thread of the test's process: real gRPC over loopback, real files, the test's storage."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from prometheus_client import CollectorRegistry, generate_latest

from services.writer.config import WriterSettings
from services.writer.log.open_store import open_store
from services.writer.server import WriterServer
from tests.builders import MAGIC_BLANK
from tidemark.access.followed_files import followed_files
from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import StoreError
from tidemark.format.record import Record, decode_record
from tidemark.store.storage import DiskStorage, Storage
from tidemark.tls.reloading import log_reload
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub
from tidemark.v1.topics_pb2_grpc import TopicServiceStub

SEGMENT_SIZE = 1 << 20
ADVERTISED = "192.168.7.65:10911"
_TIMEOUT_S = 30.0


class RunningWriter:
    """Started by `with`; stopped in order at its end, unless it has failed."""

    def __init__(self, root: Path, storage: Storage | None = None, **settings: Any) -> None:
        self.root = root
        given = {"advertised_address": ADVERTISED, "commit_log_segment_size_bytes": SEGMENT_SIZE, **settings}
        self.settings = WriterSettings(
            **{"store_root": root, "writer_listen": "127.0.0.1:0", "min_free_disk_bytes": 0, **given}
        )
        self.storage = storage or DiskStorage()
        self.failure: StoreError | None = None
        self.error: BaseException | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._loop: asyncio.AbstractEventLoop
        self._server: WriterServer

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        if self.error is not None:
            self._thread.join()
            raise self.error
        host = self.settings.writer_listen.rpartition(":")[0]
        self.address = f"{host}:{self._server.port}"
        remoting = self._server.parts.remoting
        self.remoting_port = 0 if remoting is None else remoting.server.port
        self.channel = grpc.insecure_channel(self.address, options=[("grpc.max_receive_message_length", -1)])
        self.log: Any = CommitLogServiceStub(self.channel)  # type: ignore[no-untyped-call, unused-ignore]
        self.topics: Any = TopicServiceStub(self.channel)  # type: ignore[no-untyped-call, unused-ignore]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop in order, or wait for the end of a failed one."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._server.stopping.set)
        self._thread.join(_TIMEOUT_S)
        assert not self._thread.is_alive(), "the writer did not stop"
        self.channel.close()

    def wait_for_end(self) -> None:
        """Wait until it has stopped by itself."""
        self._thread.join(_TIMEOUT_S)
        assert not self._thread.is_alive(), "the writer did not stop"

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # reported to the test
            self.error = error
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        listens = (self.settings.writer_listen, self.settings.writer_remoting_listen)
        tls = self.settings.open_tls(listens, log_reload)
        guard = self.settings.open_writer_guard() or Guard(None, RateLimits(), None)
        store = open_store(self.settings, self.storage)
        self._server = WriterServer(self.settings, store, tls, guard)
        await self._server.bind_remoting()
        async with followed_files(tls, guard):
            await self._server.start()
            self._started.set()
            self.failure = await self._server.run()
        guard.close()

    def metrics(self) -> list[str]:
        """Return the lines that its metrics listener would serve."""
        registry = CollectorRegistry()
        registry.register(self._server.metrics)
        return generate_latest(registry).decode().splitlines()

    # -- short forms of requests -------------------------------------------------------------------------------------

    def append(self, topic: str = "t", packed: bytes | None = None, **fields: Any) -> pb.AppendBatchResponse:
        """Call AppendBatch; the default is queue 0."""
        fields.setdefault("queue_id", 0)
        if packed is not None:
            fields["packed"] = packed
        answer: pb.AppendBatchResponse = self.log.AppendBatch(
            pb.AppendBatchRequest(topic=topic, **fields), timeout=_TIMEOUT_S
        )
        return answer

    def info(self) -> pb.GetLogInfoResponse:
        """Call GetLogInfo."""
        answer: pb.GetLogInfoResponse = self.log.GetLogInfo(pb.GetLogInfoRequest(), timeout=_TIMEOUT_S)
        return answer


class Refusal:
    """The error of a refused request."""

    def __init__(self, error: grpc.RpcError | status_pb2.Status) -> None:
        status = error if isinstance(error, status_pb2.Status) else rpc_status.from_call(error)
        assert status is not None, "the error has no rich details"
        info = error_details_pb2.ErrorInfo()
        assert status.details[0].Unpack(info)
        self.code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
        self.reason = info.reason
        self.domain = info.domain
        self.facts = dict(info.metadata)
        self.message = status.message
        self.retry_after_ms: int | None = None
        self.request_id = ""
        retry, request = error_details_pb2.RetryInfo(), error_details_pb2.RequestInfo()
        for detail in status.details[1:]:
            if detail.Unpack(retry):
                self.retry_after_ms = retry.retry_delay.ToMilliseconds()
            else:
                assert detail.Unpack(request)
                self.request_id = request.request_id


def refusal_of(call: Any) -> Refusal:
    """Return the error of *call*, a function."""
    try:
        call()
    except grpc.RpcError as error:
        return Refusal(error)
    raise AssertionError("the call was not refused")


def log_bytes(root: Path) -> dict[int, bytes]:
    """Return the content of every CommitLog file, by its start."""
    return {int(path.name): path.read_bytes() for path in sorted((root / "commitlog").iterdir())}


def stored_records(root: Path) -> list[Record]:
    """Return every record of the log from its first file on, over blank records, until zero bytes."""
    return [record for _, record in stored_places(root)]


def stored_places(root: Path) -> Iterator[tuple[int, Record]]:
    """Yield (physical offset, record) of the same."""
    for start, data in log_bytes(root).items():
        at = 0
        while at + 8 <= len(data):
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if int.from_bytes(data[at + 4 : at + 8], "big", signed=True) == MAGIC_BLANK:
                assert size == len(data) - at, "a blank record must reach its file's end"
                break
            if size == 0:
                return
            yield start + at, decode_record(data[at : at + size])
            at += size
