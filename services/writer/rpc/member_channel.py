"""Calls from one member of a group to another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc

from tidemark.client.errors.grpc_errors import error_of_rpc
from tidemark.client.wire.channel import credentials_of, proxy_option
from tidemark.errors import WriterUnreachableError
from tidemark.tls.credentials import Credentials
from tidemark.v1 import replication_pb2 as pb
from tidemark.v1.replication_pb2_grpc import ReplicationServiceStub

from ..replication.messages import Acknowledged, Hello, Told
from .replication_messages import decode_response, encode_request

_CONNECT_MS = 2_000
_OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # a piece is as large as its largest batch
    ("grpc.max_send_message_length", -1),
    ("grpc.min_reconnect_backoff_ms", _CONNECT_MS),
    ("grpc.use_local_subchannel_pool", 1),
)


class _Link:
    """A stream to a writer: a `WriterLink`."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._sending = asyncio.Lock()  # gRPC ends a call with two writes at once

    async def send(self, message: Hello | int | Acknowledged) -> None:
        """Send a message of a replica. Raises StoreError."""
        async with self._sending:
            with self._errors():
                await self._call.write(encode_request(message))

    async def receive(self) -> Told:
        """Return the writer's next message. Raises StoreError."""
        with self._errors():
            response = await self._call.read()
        if response is grpc.aio.EOF:
            raise WriterUnreachableError("the writer has ended the stream")
        return decode_response(response)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise StoreError for the errors of gRPC."""
        try:
            yield
        except grpc.RpcError as error:
            raise error_of_rpc(error) from error
        except asyncio.InvalidStateError:  # its error is read by `receive`
            raise WriterUnreachableError("the stream has ended") from None
        except asyncio.CancelledError:  # of this task, or of the call, which a `receive` that is given up cancels
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise WriterUnreachableError("the stream was cancelled") from None


@contextlib.asynccontextmanager
async def open_stream(address: str, credentials: Credentials) -> AsyncIterator[_Link]:
    """Open a stream to the member at *address*, host:port or tls://host:port."""
    async with member_channel(address, credentials) as channel:
        call = ReplicationServiceStub(channel).Replicate(metadata=call_metadata(credentials))
        try:
            yield _Link(call)
        finally:
            call.cancel()


async def describe(address: str, timeout_s: float, credentials: Credentials) -> pb.DescribeGroupResponse:
    """Return what the member at *address* knows of its group, if it answers in time. Raises StoreError."""
    async with member_channel(address, credentials) as channel:
        try:
            response: pb.DescribeGroupResponse = await ReplicationServiceStub(channel).DescribeGroup(
                pb.DescribeGroupRequest(), timeout=timeout_s, metadata=call_metadata(credentials)
            )
        except grpc.RpcError as error:
            raise error_of_rpc(error) from error
        return response


@contextlib.asynccontextmanager
async def member_channel(address: str, credentials: Credentials) -> AsyncIterator[grpc.aio.Channel]:
    """Open a channel to the member at *address*."""
    target = credentials.target(address)
    options = (*_OPTIONS, proxy_option())
    if target.is_tls:
        channel = grpc.aio.secure_channel(target.address, credentials_of(credentials), options=options)
    else:
        channel = grpc.aio.insecure_channel(target.address, options=options)
    try:
        yield channel
    finally:
        await channel.close()


def call_metadata(credentials: Credentials) -> tuple[tuple[str, str], ...]:
    """Return the metadata of each call: the token, if there is one."""
    authorization = credentials.authorization()
    return () if authorization is None else (("authorization", authorization),)
