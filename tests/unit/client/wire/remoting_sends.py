"""Streams to a peer, and sends on them in each way."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from tests.unit.client.fake_writer import FakeWriter
from tidemark.client.send_result import SendResult
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.client.wire.lone_send import LoneSendStream
from tidemark.client.wire.loop_reader import awaited
from tidemark.client.wire.pending_batches import Pending, PendingLimits
from tidemark.client.wire.remoting_stream import RemotingStream
from tidemark.format.elements import Element, encode_elements
from tidemark.tls.credentials import Credentials
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

LONG_S = 20.0
NOBODY, LIMITS = Credentials(), PendingLimits(1 << 24, 1000)


@contextlib.contextmanager
def stream_to(
    address: str, *, credentials: Credentials = NOBODY, limits: PendingLimits = LIMITS
) -> Iterator[LoneSendStream]:
    stream = LoneSendStream("w:1", address, credentials=credentials, timeout_s=LONG_S, limits=limits)
    try:
        yield stream
    finally:
        stream.close(time.monotonic())


def batch(name: str = "r", *, seconds: float = LONG_S, future: Any = None, **fields: Any) -> Pending:
    packed = encode_elements([Element(fields.pop("body", name.encode()), b"", 0)])
    request = AppendBatchRequest(topic="t", queue_id=0, request_id=name)
    return Pending(request, packed, len(packed), time.monotonic() + seconds, future=future or Future(), **fields)


def send(stream: RemotingStream, name: str = "r", **fields: Any) -> SendResult:
    """Send as `Producer.send` does a message with options, and `Producer.send_batch`."""
    one = batch(name, future=stream.future(AnswerReader.CALLER), **fields)
    stream.submit(one)
    return one.future.result()


def send_alone(stream: LoneSendStream, name: str = "r", **fields: Any) -> SendResult:
    """Send as `Producer.send` does a message without options."""
    return stream.send_alone(batch(name, future=stream.driven_future(()), **fields))


def begin(stream: RemotingStream, name: str = "r", **fields: Any) -> Future[SendResult]:
    """Send as `Producer.send_async` does."""
    one = batch(name, **fields)
    stream.submit(one)
    return one.future


async def send_on_loop(stream: RemotingStream, name: str = "r", **fields: Any) -> SendResult:
    """Send as `AsyncProducer.send` does."""
    one = batch(name, future=stream.future(AnswerReader.LOOP), **fields)
    stream.submit(one)
    return await awaited(one.future)


def bodies(writer: FakeWriter) -> list[bytes]:
    return [element.body for element in writer.stored.get(0, [])]


def has_thread(stream: RemotingStream) -> bool:
    return any(thread.is_alive() for thread in stream._threads)
