from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from services.writer.rpc.wrapped_handlers import Stream, Unary, around, is_ours


async def _unary(request: Any, context: Any) -> Any:
    return [request]


async def _stream(request: Any, context: Any) -> AsyncIterator[Any]:
    yield request
    yield "last"


def wrap_unary(behavior: Unary) -> Unary:
    async def wrapped(request: Any, context: Any) -> Any:
        return ["wrapped", *await behavior(request, context)]

    return wrapped


def wrap_stream(behavior: Stream) -> Stream:
    async def wrapped(request: Any, context: Any) -> Any:
        yield "wrapped"
        async for response in behavior(request, context):
            yield response

    return wrapped


KINDS: dict[str, tuple[Any, Any]] = {
    "unary_unary": (grpc.unary_unary_rpc_method_handler, _unary),
    "unary_stream": (grpc.unary_stream_rpc_method_handler, _stream),
    "stream_stream": (grpc.stream_stream_rpc_method_handler, _stream),
}


def decode(data: bytes) -> str:
    return data.decode()


def encode(text: str) -> bytes:
    return text.encode()


def wrapped(kind: str, **options: Any) -> Any:
    """Return a handler of this *kind* whose behavior is wrapped."""
    make, behavior = KINDS[kind]
    handler = make(behavior, request_deserializer=decode, response_serializer=encode)
    return around(handler, wrap_unary, wrap_stream, **options)


async def answers(behavior: Any) -> list[Any]:
    found = behavior("request", None)
    return [answer async for answer in found] if hasattr(found, "__aiter__") else list(await found)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("unary_unary", ["wrapped", "request"]),
        ("unary_stream", ["wrapped", "request", "last"]),
        ("stream_stream", ["wrapped", "request", "last"]),
    ],
)
def test_handler_keeps_its_kind_and_its_behavior_is_wrapped(kind: str, expected: list[str]) -> None:
    handler = wrapped(kind)
    assert asyncio.run(answers(getattr(handler, kind))) == expected
    assert [name for name in KINDS if getattr(handler, name) is not None] == [kind]
    assert (
        f"{handler.request_streaming:d}{handler.response_streaming:d}"
        == {
            "unary_unary": "00",
            "unary_stream": "01",
            "stream_stream": "11",
        }[kind]
    )


@pytest.mark.parametrize(
    ("kind", "leaves_bytes"), [("unary_unary", True), ("unary_stream", True), ("stream_stream", False)]
)
def test_only_a_single_request_can_be_left_as_bytes(kind: str, leaves_bytes: bool) -> None:
    """gRPC decodes the requests of a stream itself; responses are always encoded."""
    handler = wrapped(kind, decodes=False)
    assert handler.request_deserializer is (None if leaves_bytes else decode)
    assert wrapped(kind).request_deserializer is decode
    assert handler.response_serializer is encode


def test_handler_of_many_requests_and_one_response_is_not_supported() -> None:
    handler: Any = grpc.stream_unary_rpc_method_handler(_unary)
    with pytest.raises(KeyError):
        around(handler, wrap_unary, wrap_stream)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("/tidemark.v1.CommitLogService/AppendBatch", True),
        ("/tidemark.v1.TopicService/GetRoute", True),
        ("/grpc.health.v1.Health/Check", False),
        ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", False),
        ("/tidemarked.Other/Call", False),
    ],
)
def test_only_methods_of_the_own_api_are_ours(method: str, expected: bool) -> None:
    assert is_ours(method) is expected
