"""A small writer in this process that implements enough of the contract to observe the client's requests."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from tidemark.client import Producer
from tidemark.errors import StoreError
from tidemark.format.elements import Element, decode_elements
from tidemark.v1 import commit_log_pb2, commit_log_pb2_grpc, topics_pb2, topics_pb2_grpc

Result = commit_log_pb2.AppendStreamResponse.Result
Entry = commit_log_pb2.AppendStreamRequest.Entry


def refusal(
    reason: str, facts: dict[str, str] | None = None, *, retry_after_ms: int | None = None
) -> status_pb2.Status:
    """Return a google.rpc.Status as the writer sends it."""
    status = status_pb2.Status(code=3, message=f"refused: {reason}")
    details: list[error_details_pb2.ErrorInfo | error_details_pb2.RetryInfo] = [
        error_details_pb2.ErrorInfo(reason=reason, domain="tidemark", metadata=facts)
    ]
    if retry_after_ms is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(retry_after_ms)
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def connect(producer: Producer) -> None:
    """Return once the producer's writers answer, so that a measurement does not include the time to connect."""
    for _ in range(50):
        with contextlib.suppress(StoreError):
            producer.send("t", b"first")
            return
    raise AssertionError("the writer did not answer")


class FakeWriter(commit_log_pb2_grpc.CommitLogServiceServicer, topics_pb2_grpc.TopicServiceServicer):
    """A writer that keeps the batches it receives.

    *on_entry* may answer an entry itself, or raise to break the stream.
    has_topics  False: topics do not exist yet; an append would create them
    """

    def __init__(
        self,
        on_entry: Callable[[Entry], Result | None] = lambda _: None,
        *,
        queues: int = 4,
        store_name: str = "fake",
        has_topics: bool = True,
    ) -> None:
        self.on_entry = on_entry
        self.queues = queues
        self.store_name = store_name
        self.has_topics = has_topics
        self.attributes: dict[str, str] = {}
        self.asked_routes = 0
        self.received: list[commit_log_pb2.AppendBatchRequest] = []
        self.frames: list[int] = []  # number of batches in each
        self.stored: dict[int, list[Element]] = {}
        self._seen: dict[str, commit_log_pb2.AppendBatchResponse] = {}
        self._lock = threading.Lock()
        self.port = 0
        self._server: grpc.Server | None = None

    def start(self) -> str:
        """Serve on the previous port or a free one, and return the address."""
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        commit_log_pb2_grpc.add_CommitLogServiceServicer_to_server(self, self._server)
        topics_pb2_grpc.add_TopicServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        self._server.start()
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """Return the current or the last address."""
        return f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        """End all streams at once."""
        if self._server is not None:
            self._server.stop(None).wait()

    def AppendStream(  # noqa: N802
        self, request_iterator: Iterator[commit_log_pb2.AppendStreamRequest], context: grpc.ServicerContext
    ) -> Iterator[commit_log_pb2.AppendStreamResponse]:
        for frame in request_iterator:
            self.frames.append(len(frame.batches))
            results = [self.on_entry(entry) or self._append(entry) for entry in frame.batches]
            yield commit_log_pb2.AppendStreamResponse(results=results)

    def _append(self, entry: Entry) -> Result:
        request = entry.batch
        with self._lock:
            self.received.append(request)
            answer = self._seen.get(request.request_id)
            if answer is not None:
                answer.duplicate = True
                return Result(correlation_id=entry.correlation_id, appended=answer)
            queue = self.stored.setdefault(request.queue_id, [])
            elements = list(decode_elements(request.packed))
            answer = commit_log_pb2.AppendBatchResponse(
                status=commit_log_pb2.PUT_STATUS_PUT_OK,
                queue_id=request.queue_id,
                queue_offset=len(queue),
                message_count=len(elements),
                store_host=bytes([127, 0, 0, 1, 0, 0, 0, 80]),
                physical_offsets=b"".join((100 * n).to_bytes(8, "big") for n in range(len(elements))),
            )
            queue += elements
            self._seen[request.request_id] = answer
            return Result(correlation_id=entry.correlation_id, appended=answer)

    def GetRoute(  # noqa: N802
        self, request: topics_pb2.GetRouteRequest, context: grpc.ServicerContext
    ) -> topics_pb2.GetRouteResponse:
        self.asked_routes += 1
        topic = topics_pb2.Topic(
            name=request.name,
            read_queue_count=self.queues,
            write_queue_count=self.queues,
            permission=6,
            attributes=self.attributes,
        )
        return topics_pb2.GetRouteResponse(store_name=self.store_name, topic=topic, would_create=not self.has_topics)

    def _unimplemented(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    AppendBatch = ReadLog = SendBack = WatchCommitted = _unimplemented
    CreateTopic = AlterTopic = DescribeTopic = ListTopics = DeleteTopic = _unimplemented

    def GetLogInfo(  # noqa: N802
        self, request: commit_log_pb2.GetLogInfoRequest, context: grpc.ServicerContext
    ) -> commit_log_pb2.GetLogInfoResponse:
        return commit_log_pb2.GetLogInfoResponse(max_message_size_bytes=4 << 20)


class Gate:
    """Holds the writer's answers back until it is opened."""

    def __init__(self, writer: FakeWriter) -> None:
        self._open = threading.Event()
        self.reached = threading.Event()
        writer.on_entry = self._wait

    def _wait(self, entry: Entry) -> None:
        self.reached.set()
        assert self._open.wait(10)

    def open(self) -> None:
        self._open.set()
