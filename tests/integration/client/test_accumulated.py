"""Single sends that share batches, and compressed ones, against the real writer: they are stored unchanged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.client.stored import records
from tidemark.client import BATCH_QUEUE, Accumulation, Compression, Producer, decode_unique_key
from tidemark.errors import InnerBatchIllegalError
from tidemark.format.compression import decompress
from tidemark.format.elements import decode_elements
from tidemark.format.properties import decode_properties
from tidemark.local.local_stack import LocalStack

pytestmark = pytest.mark.integration


def test_every_message_is_stored_at_the_offset_in_its_result(writer: LocalStack) -> None:
    """Eight threads send; each message has its own id."""
    with Producer(writer.writer_address, accumulate=True) as producer, ThreadPoolExecutor(8) as pool:
        futures = list(pool.map(lambda n: producer.send_async("many", b"%d" % n, tag="A", key=f"k{n}"), range(2000)))
        results = [future.result() for future in futures]
    stored = {(one.queue_id, one.queue_offset): one for one in records(writer.writer_address, "many")}
    assert len(stored) == 2000
    for n, result in enumerate(results):
        record = stored[result.queue_id, result.queue_offset]
        assert (record.body, record.physical_offset) == (b"%d" % n, result.physical_offset)
        assert decode_properties(record.properties) == {"TAGS": "A", "KEYS": f"k{n}", "UNIQ_KEY": result.request_id}
        assert result.offset_message_ids[0].endswith(f"{record.physical_offset:016X}")
    assert len({result.request_id for result in results}) == 2000


def test_on_a_batch_topic_a_group_is_one_record(writer: LocalStack, producer: Producer) -> None:
    """The record has the messages' tag, by which the queue's unit is found; each message is an element."""
    producer.topics.create("grouped", queues=1, attributes=BATCH_QUEUE)
    with Producer(writer.writer_address, accumulate=Accumulation(hold_ms=1000)) as gathering:
        futures = [gathering.send_async("grouped", b"%d" % n, tag="A") for n in range(300)]
        results = [future.result() for future in futures]
    stored = records(writer.writer_address, "grouped")
    assert len(stored) < 300
    assert {decode_properties(record.properties)["TAGS"] for record in stored} == {"A"}
    elements = [element for record in stored for element in decode_elements(record.body)]
    assert [element.body for element in elements] == [b"%d" % n for n in range(300)]
    assert [decode_properties(element.properties)["UNIQ_KEY"] for element in elements] == [
        result.request_id for result in results
    ]
    assert [result.queue_offset for result in results] == list(range(300))


def test_a_refused_message_fails_alone(writer: LocalStack) -> None:
    """The other messages of its batch are stored."""
    with Producer(writer.writer_address, accumulate=Accumulation(hold_ms=1000)) as producer:
        futures = [producer.send_async("alone", b"%d" % n) for n in range(50)]
        with pytest.raises(InnerBatchIllegalError):
            producer.send_async("alone", b"bad", properties={"INNER_NUM": "7"})
        assert {future.result().count for future in futures} == {1}
    assert len(records(writer.writer_address, "alone")) == 50


@pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
def test_a_compressed_body_is_stored_compressed_and_read_decompressed(writer: LocalStack, kind: str) -> None:
    """The record has the type."""
    body = b"again and again " * 1000
    compression = Compression(kind=kind)  # type: ignore[arg-type]
    with Producer(writer.writer_address, compress=compression) as producer:
        producer.send(f"small-{kind}", body)
    (record,) = records(writer.writer_address, f"small-{kind}")
    assert len(record.body) < len(body) // 10
    assert decompress(record.body, record.sys_flag) == body


def test_a_request_id_encodes_its_time(producer: Producer) -> None:
    """It also encodes the process."""
    result = producer.send("ids", b"x")
    assert abs(decode_unique_key(result.request_id).born_ms - result.store_timestamp_ms) < 60_000


def test_a_oneway_send_is_stored(writer: LocalStack, producer: Producer) -> None:
    """It is stored once; only flush waits for it."""
    for n in range(100):
        producer.send_oneway("oneway", b"%d" % n, queue_id=0)
    assert producer.flush(10)
    assert [record.body for record in records(writer.writer_address, "oneway")] == [b"%d" % n for n in range(100)]
