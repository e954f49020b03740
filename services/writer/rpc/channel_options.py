"""What gRPC is told of connections and messages: how many, how large, and how long it waits for either."""

from __future__ import annotations

from tidemark.store.open_files_limit import connections_within

from ..config import WriterSettings

Options = tuple[tuple[str, int], ...]


def message_options(settings: WriterSettings) -> Options:
    """Sizes. A request's limit holds also for what a compressed one becomes."""
    return (
        ("grpc.max_receive_message_length", settings.receive_limit_bytes),
        ("grpc.max_send_message_length", -1),
    )


def connection_options(settings: WriterSettings) -> Options:
    """Numbers and times. A connection beyond the greatest number is closed as soon as it is made."""
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
