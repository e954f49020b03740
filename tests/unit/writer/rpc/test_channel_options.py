from __future__ import annotations

import asyncio
import resource
from typing import Any

import grpc
import pytest

from services.writer.config import WriterSettings
from services.writer.rpc.channel_options import connection_options, message_options
from tests.unit.writer.rpc.served import CALL, LONG_S, Log, connected, serving

LIMIT = (1 << 20) + 2 * 1000  # docs: twice the greatest message, and a mebibyte
_SETTINGS, _MAX_CONCURRENT_STREAMS = 4, 3  # RFC 9113, 6.5


def settings(**given: Any) -> WriterSettings:
    return WriterSettings(**given)


def request_of(size: int) -> bytes:
    """Return a request of *size* bytes: one field that the method does not know."""
    length = size - 4
    return bytes([15 << 3 | 2, length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14]) + bytes(length)


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_request_above_the_limit_is_refused_also_if_it_is_compressed(compression: grpc.Compression) -> None:
    """A few bytes must not become many in the writer's memory."""

    async def run() -> None:
        options = message_options(settings(max_message_size_bytes=1000))
        async with connected(Log(), options=options) as channel:
            call = channel.unary_unary(CALL + "GetLogInfo")
            assert await call(request_of(LIMIT), timeout=LONG_S, compression=compression)
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await call(request_of(LIMIT + 1), timeout=LONG_S, compression=compression)
            assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(run())


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.partition(":")
    return await asyncio.open_connection(host, int(port))


async def ends(reader: asyncio.StreamReader) -> bool:
    """Return True once the server has closed the connection."""
    try:
        while await asyncio.wait_for(reader.read(1000), LONG_S):
            pass
    except ConnectionResetError:
        pass
    return True


def test_connection_above_the_maximum_is_closed() -> None:
    async def run() -> None:
        options = connection_options(settings(max_connections=2, handshake_timeout_ms=600_000))
        async with serving(Log(), options=options) as address:
            kept = [await connect(address) for _ in range(2)]
            for reader, _ in kept:
                assert await asyncio.wait_for(reader.readexactly(1), LONG_S) == b"\0", "the server speaks HTTP/2"
            refused, writer = await connect(address)
            assert await ends(refused)
            for one in (writer, *(writer for _, writer in kept)):
                one.close()

    asyncio.run(run())


def test_connections_leave_files_of_the_process_for_the_store() -> None:
    options = dict(connection_options(settings(max_connections=1 << 20)))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 1 <= options["grpc.max_allowed_incoming_connections"] < files


def test_client_that_does_not_finish_its_handshake_is_disconnected() -> None:
    async def run() -> None:
        async with serving(Log(), options=connection_options(settings(handshake_timeout_ms=100))) as address:
            reader, writer = await connect(address)
            assert await ends(reader)
            writer.close()

    asyncio.run(run())


def test_connection_announces_its_number_of_concurrent_calls() -> None:
    async def run() -> None:
        async with serving(Log(), options=connection_options(settings(max_streams_per_connection=7))) as address:
            reader, writer = await connect(address)
            head = await asyncio.wait_for(reader.readexactly(9), LONG_S)
            assert head[3] == _SETTINGS
            payload = await asyncio.wait_for(reader.readexactly(int.from_bytes(head[:3], "big")), LONG_S)
            announced = {
                int.from_bytes(payload[at : at + 2], "big"): int.from_bytes(payload[at + 2 : at + 6], "big")
                for at in range(0, len(payload), 6)
            }
            assert announced[_MAX_CONCURRENT_STREAMS] == 7
            writer.close()

    asyncio.run(run())
