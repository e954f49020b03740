"""``python -m services.writer.healthcheck``: exit 0 when this host's writer serves. For containers."""

from __future__ import annotations

import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from .config import WriterSettings

_TIMEOUT_S = 3.0


def is_serving(address: str) -> bool:
    """Whether the writer at *address* says that it serves."""
    with grpc.insecure_channel(address) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_S)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def main() -> int:
    """0 when it serves."""
    port = WriterSettings().writer_listen.rpartition(":")[2]
    return 0 if is_serving(f"127.0.0.1:{port}") else 1


if __name__ == "__main__":
    sys.exit(main())
