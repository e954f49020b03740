from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from services.writer.replication.messages import Hello
from services.writer.rpc.member_channel import open_stream
from tidemark.errors import StoreError, WriterUnreachableError
from tidemark.tls.credentials import Credentials
from tidemark.v1.replication_pb2 import ReplicateRequest, ReplicateResponse
from tidemark.v1.replication_pb2_grpc import ReplicationServiceServicer, add_ReplicationServiceServicer_to_server

LARGE = Hello("", "a" * (1 << 20), "", 0, 0, 0, 0)


class SilentWriter(ReplicationServiceServicer):
    async def Replicate(  # noqa: N802
        self, request_iterator: AsyncIterator[ReplicateRequest], context: Any
    ) -> AsyncIterator[ReplicateResponse]:
        await asyncio.Event().wait()
        yield ReplicateResponse()


async def flood(link: Any) -> None:
    """Send until the writer, which does not read, has no room."""
    while True:
        await link.send(LARGE)


async def with_silent_writer(use: Any) -> None:
    server = grpc.aio.server()
    add_ReplicationServiceServicer_to_server(SilentWriter(), server)  # type: ignore[abstract]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with open_stream(f"127.0.0.1:{port}", Credentials()) as link:
            await use(link)
    finally:
        await server.stop(0)


def test_a_receive_that_is_given_up_ends_a_send_with_an_error() -> None:
    """gRPC then cancels the call, and a waiting send raises CancelledError although its task was not cancelled."""

    async def use(link: Any) -> None:
        sending = asyncio.create_task(flood(link))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(link.receive(), 0.1)
        with pytest.raises(WriterUnreachableError, match=r"the stream (was cancelled|has ended)"):
            await sending  # on a busy machine it does not wait yet
        for call in (link.send(LARGE), link.receive()):
            with pytest.raises(StoreError):
                await call

    asyncio.run(with_silent_writer(use))


def test_a_task_that_is_cancelled_while_it_receives_ends() -> None:
    async def use(link: Any) -> None:
        receiving = asyncio.create_task(link.receive())
        await asyncio.sleep(0.05)
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving

    asyncio.run(with_silent_writer(use))
