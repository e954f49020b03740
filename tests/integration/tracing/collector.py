"""A collector of OTLP/gRPC in the test's process that keeps every received span."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, NamedTuple, Self

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Seen(NamedTuple):
    """A span. Ids are hexadecimal; kind: INTERNAL, SERVER, CLIENT, PRODUCER or CONSUMER."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    links: list[tuple[str, str]]  # trace id, span id
    is_error: bool


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Listens on *endpoint* within a `with`."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self._changed = threading.Condition()
        self._server = grpc.server(ThreadPoolExecutor(2))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call, unused-ignore]
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.endpoint = f"http://127.0.0.1:{port}"

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        """Receive spans from an exporter."""
        with self._changed:
            for resource in request.resource_spans:
                service = _values(resource.resource.attributes)["service.name"]
                self.spans += [_seen(service, span) for scope in resource.scope_spans for span in scope.spans]
            self._changed.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()

    def wait(self, is_enough: Callable[[list[Seen]], bool], timeout_s: float = 60.0) -> list[Seen]:
        """Return all spans so far once they are enough."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not is_enough(self.spans):
                left = deadline - time.monotonic()
                assert left > 0, [(span.service, span.name, span.trace_id) for span in self.spans]
                self._changed.wait(left)
            return list(self.spans)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(None).wait()


def _seen(service: str, span: Span) -> Seen:
    return Seen(
        service,
        span.name,
        Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _values(span.attributes),
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        span.status.code == 2,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
