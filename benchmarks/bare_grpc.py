"""A gRPC server that only echoes: `python -m benchmarks.bare_grpc` sends each call's bytes back and prints its port.

It uses the same `grpc.aio` as the writer without the writer's work, to measure the upper bound of single sends.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

SERVICE, METHOD = "bare.Echo", "Send"


async def _answer(request: bytes, _: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    return request


async def main() -> None:
    """Serve until terminated."""
    server: Any = grpc.aio.server()
    handlers: dict[str, Any] = {METHOD: grpc.unary_unary_rpc_method_handler(_answer)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
