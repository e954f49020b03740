from __future__ import annotations

import asyncio

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from services.indexer.query.web.request_span_middleware import RequestSpanMiddleware
from tidemark.tracing.attributes import REQUEST_ID

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"


async def one(request: Request) -> Response:
    """Answer with the status in the path and the current span's id."""
    status = int(request.path_params["status"])
    if not status:
        raise ConnectionResetError("broken")
    return PlainTextResponse(f"{get_current_span().get_span_context().span_id:x}", status)


def ask(path: str, **headers: str) -> tuple[httpx.Response, ReadableSpan]:
    """Return the answer to a GET and its span."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    routed = Starlette(routes=[Route("/answers/{status}", one)])
    app = RequestSpanMiddleware(routed, provider.get_tracer("test"))

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.get(path, headers=headers)

    answer = asyncio.run(get())
    (span,) = exporter.get_finished_spans()
    return answer, span


def test_a_span_is_named_by_the_route_and_not_by_the_path() -> None:
    answer, span = ask("/answers/200")
    assert (span.name, span.kind) == ("GET /answers/{status}", SpanKind.SERVER)
    assert span.attributes is not None
    assert span.attributes["http.route"] == "/answers/{status}"
    assert (span.attributes["url.path"], span.attributes["http.response.status_code"]) == ("/answers/200", 200)
    assert REQUEST_ID in span.attributes
    assert int(answer.text, 16) == span.context.span_id, "the endpoint runs within the span"


def test_a_path_without_a_route_is_named_by_its_method_alone() -> None:
    """Names of unknown paths would be as many as callers invent."""
    _, span = ask("/secret/1234")
    assert span.name == "GET"
    assert span.attributes is not None
    assert "http.route" not in span.attributes


def test_a_request_continues_the_trace_of_its_caller() -> None:
    _, span = ask("/answers/200", traceparent=f"00-{TRACE_ID}-{PARENT_ID}-01")
    assert span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE_ID, PARENT_ID)


@pytest.mark.parametrize(("status", "is_error"), [(200, False), (404, False), (499, False), (500, True), (503, True)])
def test_only_service_faults_are_span_errors(status: int, is_error: bool) -> None:
    _, span = ask(f"/answers/{status}")
    assert (span.status.status_code is StatusCode.ERROR) is is_error


def test_a_request_that_raises_ends_its_span_as_an_error() -> None:
    _, span = ask("/answers/0")
    assert (span.name, span.status.status_code) == ("GET /answers/{status}", StatusCode.ERROR)
