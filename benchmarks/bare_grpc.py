"""A gRPC server without a writer's work: `python -m benchmarks.bare_grpc` prints its port.

It uses the same `grpc.aio` as the writer, to measure the upper bound of sends: a call gets its own bytes back, and each
message of a stream a short answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

SERVICE, METHOD, STREAM = "bare.Echo", "Send", "Append"
_ANSWER = bytes(40)  # as long as the writer's answer to a batch


async def _answer(request: bytes, _: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    return request


async def _answer_each(
    requests: AsyncIterator[bytes], _: grpc.aio.ServicerContext[bytes, bytes]
) -> AsyncIterator[bytes]:
    async for _request in requests:
        yield _ANSWER


async def main() -> None:
    """Serve until terminated."""
    server: Any = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    handlers: dict[str, Any] = {
        METHOD: grpc.unary_unary_rpc_method_handler(_answer),
        STREAM: grpc.stream_stream_rpc_method_handler(_answer_each),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
