"""Batches as admission makes them, for tests of what comes after it."""

from __future__ import annotations

from typing import Any

from services.writer.batch.batch import Batch, QueueKey, Wrapper
from services.writer.batch.record_encoder import u8
from tests.builders import BORN_HOST, BORN_MS, properties, wire_batch


def batch_of(*bodies: bytes, topic: str = "orders", queue_id: int = 0, key: str = "", **facts: Any) -> Batch:
    """Return a batch of messages with these *bodies*; *key* is the UNIQ_KEY of the first one.

    facts: further fields of `Batch`
    """
    first = properties({"UNIQ_KEY": key}) if key else b""
    wire = wire_batch(*((body, b"" if number else first, 0) for number, body in enumerate(bodies)))
    return Batch(
        key=QueueKey(topic, queue_id),
        topic_field=u8(bytes([len(topic)]) + topic.encode()),
        wire=u8(wire),
        count=len(bodies),
        parts_size=sum(map(len, bodies)) + len(first),
        wrapper=facts.pop("wrapper", Wrapper(BORN_HOST, BORN_MS)),
        unique_key=key.encode(),
        first_extra=u8(b""),
        **facts,
    )
