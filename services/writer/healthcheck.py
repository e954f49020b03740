"""``python -m services.writer.healthcheck``: exit 0 when this host's writer serves. For containers."""

from __future__ import annotations

import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tidemark.errors import StoreError
from tidemark.tls.reloading import Reloading

from .config import WriterSettings

_TIMEOUT_S = 3.0
_NO_PROXY = ("grpc.enable_http_proxy", 0)


def is_serving(address: str, tls: Reloading | None = None) -> bool:
    """Whether the writer at *address* says that it serves. tls: what it shows, and we show it."""
    with _channel(address, tls) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_S)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def _channel(address: str, tls: Reloading | None) -> grpc.Channel:
    if tls is None:
        return grpc.insecure_channel(address, options=(_NO_PROXY,))
    held = tls.current
    credentials = grpc.ssl_channel_credentials(held.cert, held.key, held.cert)
    return grpc.secure_channel(
        address, credentials, options=(_NO_PROXY, ("grpc.ssl_target_name_override", held.leaf.name))
    )


def main() -> int:
    """0 when it serves."""
    settings = WriterSettings()
    port = settings.writer_listen.rpartition(":")[2]
    try:
        tls = settings.open_tls(settings.writer_listen, lambda _: None)
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0 if is_serving(f"127.0.0.1:{port}", tls) else 1


if __name__ == "__main__":
    sys.exit(main())
