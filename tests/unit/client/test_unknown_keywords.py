"""Every call for sending or reading refuses unknown keywords and names the most similar one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.client.fake_writer import FakeWriter
from tidemark.client import AsyncConsumer, AsyncProducer, Consumer, Message, Producer

Call = Callable[..., Any]
SENDS: dict[str, Call] = {
    "send": lambda producer, **options: producer.send("t", b"x", **options),
    "send_async": lambda producer, **options: producer.send_async("t", b"x", **options),
    "send_oneway": lambda producer, **options: producer.send_oneway("t", b"x", **options),
    "send of a Message": lambda producer, **options: producer.send(Message("t", b"x"), **options),
    "send_batch": lambda producer, **options: producer.send_batch([Message("t", b"x")], **options),
    "send_batch_async": lambda producer, **options: producer.send_batch_async([Message("t", b"x")], **options),
    "send_packed_async": lambda producer, **options: producer.send_packed_async("t", b"x", **options),
    "send_table": lambda producer, **options: producer.send_table(pa.table({"b": ["x"]}), "t", body="b", **options),
    "topics.create": lambda producer, **options: producer.topics.create("t", **options),
    "topics.alter": lambda producer, **options: producer.topics.alter("t", **options),
}
NEAREST = {"kye": "key", "headers": "properties", "partition": "queue_id", "proprties": "properties", "tags": "tag"}


@pytest.mark.parametrize("call", SENDS.values(), ids=SENDS.keys())
def test_an_unknown_keyword_is_refused_before_anything_is_sent(
    writer: FakeWriter, producer: Producer, call: Call
) -> None:
    with pytest.raises(TypeError, match="takes no keyword 'colour'"):
        call(producer, colour="red")
    assert writer.received == []


@pytest.mark.parametrize("given", NEAREST)
@pytest.mark.parametrize("send", ["send", "send_async", "send_oneway"])
def test_the_nearest_keyword_is_suggested(producer: Producer, send: str, given: str) -> None:
    with pytest.raises(TypeError, match=f"'{given}'.* Did you mean '{NEAREST[given]}'"):
        SENDS[send](producer, **{given: "x"})


def test_the_asynchronous_producer_refuses_the_same(writer: FakeWriter) -> None:
    async def run() -> None:
        async with AsyncProducer(writer.address) as producer:
            sends: tuple[Any, ...] = (
                lambda **options: producer.send("t", b"x", **options),
                lambda **options: producer.send_oneway("t", b"x", **options),
                lambda **options: producer.send_batch([Message("t", b"x")], **options),
                lambda **options: producer.send_table(pa.table({"b": ["x"]}), "t", body="b", **options),
            )
            for send in sends:
                with pytest.raises(TypeError, match="requst_id"):
                    await send(requst_id="job")

    asyncio.run(run())
    assert writer.received == []


@pytest.mark.parametrize(
    ("make", "given", "nearest"),
    [
        (lambda **options: Message("t", b"x", **options), "kyes", "keys"),
        (lambda **options: Message("t", b"x", **options), "headers", "properties"),
        (Producer, "timeout", "timeout_s"),
        (Producer, "bootstrap_servers", "writers"),
        (AsyncProducer, "retry", "retries"),
        (Consumer, "group_id", "group"),
        (Consumer, "tags", "tag"),
        (AsyncConsumer, "auto_comit", "auto_commit"),
    ],
)
def test_unknown_settings_are_refused_with_the_nearest(make: Call, given: str, nearest: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"takes no keyword {given!r}. Did you mean {nearest!r}?")):
        make(**{given: "x"})


def test_a_type_error_with_another_cause_is_unchanged() -> None:
    with pytest.raises(TypeError, match="missing"):
        Message("t")  # type: ignore[call-arg]
