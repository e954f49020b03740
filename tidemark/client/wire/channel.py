"""The gRPC channel of a client. Keepalive, reconnection, and retries of repeatable calls are gRPC's own."""

from __future__ import annotations

import os

import grpc
import orjson

from tidemark.client.errors.address_faults import require_writer_address
from tidemark.client.wire.bearer_token import Bearer
from tidemark.tls.credentials import Credentials

KEEPALIVE_TIME_MS = 20_000  # at least the writer's min_ping_interval_ms, which it enforces
_REPEATABLE = (
    {"service": "tidemark.v1.CommitLogService", "method": "GetLogInfo"},
    {"service": "tidemark.v1.TopicService", "method": "CreateTopic"},
    {"service": "tidemark.v1.TopicService", "method": "DescribeTopic"},
    {"service": "tidemark.v1.TopicService", "method": "ListTopics"},
    {"service": "tidemark.v1.TopicService", "method": "GetRoute"},
)
_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": _REPEATABLE,
            "waitForReady": True,
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.05s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
            },
        }
    ]
}
_SERVICE_CONFIG_OPTION = ("grpc.service_config", orjson.dumps(_SERVICE_CONFIG).decode())
_OPTIONS = (
    ("grpc.max_send_message_length", -1),  # the writer decides how large a batch may be
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # despite its name: the time limit of one connection attempt
    ("grpc.use_local_subchannel_pool", 1),  # own connection: producers of one process do not share one
)
_OPTIONS_ALONE = (_SERVICE_CONFIG_OPTION, ("grpc.max_reconnect_backoff_ms", 1_000))
_OPTIONS_OF_MEMBER = (("grpc.max_reconnect_backoff_ms", 100),)  # the coming writer is found soon after its start


def default_address() -> str:
    """Return TIDEMARK_WRITER_ADDRESS, or its default 127.0.0.1:8081."""
    from tidemark.client.settings import ClientSettings  # pydantic takes longer to import than gRPC

    return ClientSettings().writer_address


def open_channel(address: str, credentials: Credentials | None = None, *, is_member: bool = False) -> grpc.Channel:
    """Open a channel to the writer at *address*: host:port or tls://host:port. It connects at the first call.

    credentials: default: from the environment. Raises TlsFilesError for unusable files
    is_member: one of several members of a group: calls that fail are repeated elsewhere, not here
    """
    credentials = credentials or Credentials.from_environment()
    target = credentials.target(require_writer_address(address))
    options = (*(_OPTIONS_OF_MEMBER if is_member else _OPTIONS_ALONE), *_OPTIONS, proxy_option())
    if target.is_tls:
        channel = grpc.secure_channel(target.address, credentials_of(credentials), options=options)
    else:
        channel = grpc.insecure_channel(target.address, options=options)
    return grpc.intercept_channel(channel, Bearer(credentials)) if credentials.shows_token else channel


def proxy_option() -> tuple[str, int]:
    """Return the channel option that makes gRPC ignore http_proxy and the like, unless TIDEMARK_GRPC_PROXY is set.

    It reads the environment directly, because importing pydantic takes longer than importing gRPC.
    """
    asked = os.environ.get("TIDEMARK_GRPC_PROXY", "").strip().lower() in ("1", "true", "t", "yes", "y", "on")
    return "grpc.enable_http_proxy", int(asked)


def credentials_of(credentials: Credentials) -> grpc.ChannelCredentials:
    """Return the trusted CA and the client certificate for a channel."""
    pems = credentials.read()
    return grpc.ssl_channel_credentials(pems.ca, pems.key, pems.cert)
