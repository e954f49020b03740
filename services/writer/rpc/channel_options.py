"""gRPC options for connections and messages: numbers, sizes and timeouts."""

from __future__ import annotations

from tidemark.store.open_files_limit import connections_within

from ..config import WriterSettings

Options = tuple[tuple[str, int], ...]


def message_options(settings: WriterSettings) -> Options:
    """Return the size limits. The limit of a request also applies after its decompression."""
    return (
        ("grpc.max_receive_message_length", settings.receive_limit_bytes),
        ("grpc.max_send_message_length", -1),
    )


def connection_options(settings: WriterSettings) -> Options:
    """Return the limits and timeouts of connections. A connection above the maximum is closed at once."""
    return (
        ("grpc.max_allowed_incoming_connections", connections_within(settings.max_connections)),
        ("grpc.max_concurrent_streams", settings.max_streams_per_connection),
        ("grpc.server_handshake_timeout_ms", settings.handshake_timeout_ms),
        ("grpc.keepalive_time_ms", settings.keepalive_interval_ms),
        ("grpc.keepalive_timeout_ms", settings.keepalive_timeout_ms),
        ("grpc.max_connection_idle_ms", settings.max_connection_idle_ms),
        ("grpc.http2.min_ping_interval_without_data_ms", settings.min_ping_interval_ms),
        ("grpc.keepalive_permit_without_calls", 1),
    )
