from __future__ import annotations

import asyncio
from typing import NamedTuple, cast

import grpc
import pytest

from services.writer.rpc.request_id_interceptor import RequestIdInterceptor, request_id_metadata


class Details(NamedTuple):
    """The details of a call, as gRPC gives them to interceptors."""

    invocation_metadata: tuple[tuple[str, str | bytes], ...] | None
    method: str = "/tidemark.v1.CommitLogService/GetLogInfo"


def id_of(*metadata: tuple[str, str | bytes]) -> str:
    """Return the id that the handler of a call with this *metadata* sees, and its answer carries."""
    seen: list[tuple[tuple[str, str], ...]] = []

    async def handler(_: grpc.HandlerCallDetails) -> None:
        seen.append(request_id_metadata())

    details = cast(grpc.HandlerCallDetails, Details(metadata or None))
    asyncio.run(RequestIdInterceptor().intercept_service(handler, details))
    ((name, value),) = seen[0]
    assert name == "x-request-id"
    return value


def test_a_call_keeps_the_id_of_its_caller() -> None:
    assert id_of(("other", "x"), ("x-request-id", "mine-7")) == "mine-7"


def test_calls_without_an_id_get_different_ones() -> None:
    assert len({id_of(), id_of(), id_of(("other", "x"))}) == 3


@pytest.mark.parametrize("given", ["", "two words", "line\nbreak", "x" * 129, b"bytes"])
def test_a_request_id_that_could_break_a_log_line_is_replaced(given: str | bytes) -> None:
    assert id_of(("x-request-id", given)) not in ("", given)


def test_there_is_no_request_id_outside_a_call() -> None:
    assert request_id_metadata() == ()
