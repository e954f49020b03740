from __future__ import annotations

from tests.unit.client.received_messages import ORDERS
from tidemark.client import SendResult, SendStatus
from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.gathered_batch import KEYED_OVERHEAD, GatheredMessages, GroupKey
from tidemark.client.producer.shared_future import SharedFuture
from tidemark.client.producer.topic_routes import Route
from tidemark.client.wire.append_frame import encode_entry
from tidemark.format.elements import Element, decode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.properties import decode_properties
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, AppendStreamRequest

QUEUE = MessageQueue("orders", "127.0.0.1:1", 2)


def group(*, tag: str | None = None, is_batch: bool = False) -> GatheredMessages:
    return GatheredMessages(GroupKey(ORDERS.topic, QUEUE, tag), Route((QUEUE,), is_batch), 10.0, due=11.0)


def add(to: GatheredMessages, body: bytes, *, began: float = 10.0, **properties: str) -> SharedFuture[SendResult]:
    encoded = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
    element = Element(body, encoded, 0)
    return to.add(element, properties, KEYED_OVERHEAD + len(body) + len(encoded), began)


def keys_of(packed: bytes) -> list[str]:
    return [decode_properties(element.properties)["UNIQ_KEY"] for element in decode_elements(packed)]


def result(count: int, offsets: list[int]) -> SendResult:
    raw = b"".join(offset.to_bytes(8, "big") for offset in offsets)
    return SendResult(
        "orders", 2, 40, count, offsets[0], 900, 0, SendStatus.PUT_OK, False, 1, "batch", "w", b"", raw
    )  # fmt: skip


def test_messages_are_packed_in_order_with_distinct_keys() -> None:
    made = group()
    for body in (b"a", b"b", b"c"):
        add(made, body)
    outgoing = made.outgoing(UniqueKeys())
    keys = keys_of(outgoing.packed)
    assert [element.body for element in decode_elements(outgoing.packed)] == [b"a", b"b", b"c"]
    assert (len(set(keys)), outgoing.request.request_id) == (3, keys[0])
    assert (outgoing.count, outgoing.queue, outgoing.wait) == (3, QUEUE, False)


def test_a_unique_key_of_a_message_is_kept() -> None:
    made = group()
    add(made, b"a", UNIQ_KEY="own")
    add(made, b"b")
    outgoing = made.outgoing(UniqueKeys())
    assert (keys_of(outgoing.packed)[0], outgoing.request.request_id) == ("own", "own")


def test_the_counted_size_is_the_size_on_the_wire() -> None:
    """So that a group of at most so many bytes is a batch of at most so many bytes."""
    made = group()
    for body in (b"a", b"b" * 1000):
        add(made, body, colour="red")
    assert made.size == len(made.outgoing(UniqueKeys()).packed)


def test_the_timeout_counts_from_the_earliest_call() -> None:
    made = group()
    add(made, b"a", began=9.0)
    add(made, b"b", began=9.5)
    assert made.outgoing(UniqueKeys()).began == 9.0


def test_the_first_trace_context_is_the_context_of_the_batch() -> None:
    made = group()
    add(made, b"a")
    add(made, b"b", traceparent="first", tracestate="s")
    add(made, b"c", traceparent="second")
    request = made.outgoing(UniqueKeys()).request
    assert isinstance(request, AppendBatchRequest)
    assert (request.traceparent, request.tracestate) == ("first", "s")


def test_the_common_tag_is_a_property_of_the_batch_on_a_batch_topic_only() -> None:
    for is_batch, expected in ((True, {"TAGS": "red"}), (False, {})):
        made = group(tag="red", is_batch=is_batch)
        add(made, b"a", TAGS="red")
        entry = made.outgoing(UniqueKeys())
        head, packed = encode_entry(1, entry.request, entry.packed)
        (sent,) = AppendStreamRequest.FromString(head + packed).batches
        assert dict(sent.batch.properties) == expected


def test_each_message_gets_its_own_offset_from_the_result() -> None:
    made = group()
    futures = [add(made, body) for body in (b"a", b"b")]
    keys = keys_of(made.outgoing(UniqueKeys()).packed)
    made.complete(result(2, [100, 300]))
    results = [future.result(0) for future in futures]
    assert [(one.queue_offset, one.physical_offset, one.count) for one in results] == [(40, 100, 1), (41, 300, 1)]
    assert [one.request_id for one in results] == keys
    assert [one.physical_offsets for one in results] == [[100], [300]]


def test_messages_of_an_inner_batch_share_its_record() -> None:
    made = group(is_batch=True)
    futures = [add(made, body) for body in (b"a", b"b")]
    made.outgoing(UniqueKeys())
    made.complete(result(2, [100]))
    assert [future.result(0).physical_offset for future in futures] == [100, 100]
    assert [future.result(0).queue_offset for future in futures] == [40, 41]


def test_the_messages_of_a_refused_batch_are_sent_singly_with_the_same_keys() -> None:
    made = group()
    futures = [add(made, body) for body in (b"a", b"b")]
    keys = keys_of(made.outgoing(UniqueKeys()).packed)
    singles = made.singles()
    for number, (future, _) in enumerate(singles):
        future.set_result(result(1, [100 * number]))
    assert [future.result(0).physical_offset for future in futures] == [0, 100]
    assert [keys_of(outgoing.packed) for _, outgoing in singles] == [[keys[0]], [keys[1]]]
    assert [(outgoing.request.request_id, outgoing.count) for _, outgoing in singles] == [(keys[0], 1), (keys[1], 1)]
