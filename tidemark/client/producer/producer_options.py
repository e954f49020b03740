"""ProducerOptions: the keyword arguments of `Producer` and `AsyncProducer`."""

from __future__ import annotations

from os import PathLike
from typing import TypedDict

from tidemark.client.producer.accumulator import Accumulation
from tidemark.client.producer.compression import Compression
from tidemark.client.producer.send_hooks import Hooks
from tidemark.client.values import Serializer
from tidemark.client.wire.wire import Wire
from tidemark.tls.credentials import Credentials


class ProducerOptions(TypedDict, total=False):
    """Keywords of `Producer`, which documents their meaning and defaults."""

    route_file: str | PathLike[str] | None
    credentials: Credentials | None
    timeout_s: float
    retries: int
    max_in_flight_bytes: int
    max_in_flight_messages: int
    max_message_size_bytes: int
    accumulate: bool | Accumulation
    compress: bool | Compression
    avoid_slow_writers: bool
    hooks: Hooks
    wire: Wire | None
    trace: bool
    value_serializer: Serializer
