"""RemotingSettings: settings of the remoting protocol that the writer and the query service share."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field
from pydantic_settings import BaseSettings

from tidemark.remoting import MAX_FRAME_SIZE_BYTES

_WILDCARDS = ("0.0.0.0", "[::]", "")  # noqa: S104 - recognised here, not bound


class ConnectionLimits(NamedTuple):
    """Limits of each connection of one server, unless the limit is of all. Times in seconds."""

    connections: int
    frame_bytes: int
    frame_s: float
    idle_s: float
    write_s: float
    in_flight: int
    unsent_bytes: int
    incomplete_bytes: int = 256 << 20  # of all connections together


class RouteAddresses(NamedTuple):
    """host:port of both services for routes; None for one that does not serve the remoting protocol."""

    writer: str | None
    query: str | None


class RemotingSettings(BaseSettings):
    """Settings of docs/remoting.md. Either service answers for routes, so each reads the addresses of both."""

    writer_remoting_listen: str = Field(
        "", description="address:port of the writer for RocketMQ's clients, usually port 10911; empty: off"
    )
    query_remoting_listen: str = Field(
        "", description="address:port of the query service for RocketMQ's clients, usually port 10912; empty: off"
    )
    writer_remoting_address: str = Field(
        "", description="host:port of the writer in routes, no IPv6; empty: writer_remoting_listen"
    )
    query_remoting_address: str = Field(
        "", description="host:port of the query service in routes, no IPv6; empty: query_remoting_listen"
    )
    auto_create_topics: bool = Field(True, description="create a missing topic at its first message")
    default_queues: int = Field(4, ge=1, le=1024, description="queues of a topic created without a number")
    cluster_name: str = Field("tidemark", min_length=1, max_length=255, description="cluster name in routes")
    remoting_max_connections: int = Field(
        16_384, ge=1, le=1 << 20, description="connections of RocketMQ's clients, also limited by open files"
    )
    remoting_max_frame_bytes: int = Field(
        MAX_FRAME_SIZE_BYTES,
        ge=4_096,
        le=1 << 30,
        description="largest frame, at the writer at least two messages; beyond: connection closed",
    )
    remoting_frame_timeout_ms: int = Field(
        60_000, ge=100, le=3_600_000, description="time for the rest of a frame; later: connection closed"
    )
    remoting_idle_timeout_ms: int = Field(
        120_000, ge=1_000, le=86_400_000, description="silence after which a connection is closed"
    )
    remoting_write_timeout_ms: int = Field(
        20_000, ge=100, le=600_000, description="a client that takes no answer for this time is disconnected"
    )
    remoting_max_in_flight: int = Field(
        1_024, ge=1, le=1 << 20, description="unanswered requests of a connection; beyond, it is not read"
    )
    remoting_max_unsent_bytes: int = Field(
        8 << 20, ge=1_024, le=1 << 30, description="unsent answers of a connection; beyond, it is not read"
    )

    remoting_max_incomplete_bytes: int = Field(
        256 << 20,
        ge=64 << 10,
        le=1 << 40,
        description="memory for incomplete frames of all connections; beyond, that with the largest is closed",
    )

    @property
    def connection_limits(self) -> ConnectionLimits:
        """The limits of each connection."""
        return ConnectionLimits(
            self.remoting_max_connections,
            self.remoting_max_frame_bytes,
            self.remoting_frame_timeout_ms / 1000,
            self.remoting_idle_timeout_ms / 1000,
            self.remoting_write_timeout_ms / 1000,
            self.remoting_max_in_flight,
            self.remoting_max_unsent_bytes,
            self.remoting_max_incomplete_bytes,
        )

    def route_addresses(self, *, writer_port: int = 0, query_port: int = 0) -> RouteAddresses:
        """Return the addresses for routes. A port replaces port 0 of the address that the caller has bound."""
        return RouteAddresses(
            bound_address(self.writer_remoting_address, self.writer_remoting_listen, writer_port),
            bound_address(self.query_remoting_address, self.query_remoting_listen, query_port),
        )

    def check_remoting(self) -> None:
        """Raise ValueError if an address cannot be used."""
        for name in ("writer_remoting_listen", "query_remoting_listen"):
            require_address(name, getattr(self, name), is_route=False)
        for name in ("writer_remoting_address", "query_remoting_address"):
            require_address(name, getattr(self, name), is_route=True)


def require_address(name: str, value: str, *, is_route: bool) -> None:
    """Raise ValueError if *value* is neither empty nor host:port. is_route: clients read it, which must not be IPv6."""
    if not value:
        return
    host, separator, port = value.rpartition(":")
    if not separator or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ValueError(f"{name} is {value!r}: expected address:port, port at most 65535")
    if is_route and (":" in host or "[" in host or "," in host or " " in host or int(port) == 0):
        raise ValueError(
            f"{name} is {value!r}: expected host:port with a host name or an IPv4 address, port 1 to 65535"
        )


def bound_address(given: str, listen: str, bound_port: int) -> str | None:
    """Return *given*, or else the address of *listen* with its bound port; None if neither is set."""
    if given or not listen:
        return given or None
    host, _, text = listen.rpartition(":")
    if host in _WILDCARDS:
        host = "127.0.0.1"
    port = int(text) or bound_port
    return f"{host}:{port}" if port else None
