"""Compression of bodies, and its flag in the record. Decompression: tests/unit/read."""

from __future__ import annotations

import sys

import pytest

from tests.unit.client.fake_writer import FakeWriter
from tidemark.client import Accumulation, Compression, Message, Producer
from tidemark.format.compression import decompress
from tidemark.format.elements import decode_elements

TEXT = b"the same words again and again " * 300


@pytest.mark.parametrize(("kind", "bits"), [("zlib", 0x301), ("lz4", 0x101), ("zstd", 0x201)])
def test_a_reader_decompresses_the_original_body(writer: FakeWriter, kind: str, bits: int) -> None:
    """The sys_flag names the compression type."""
    compression = Compression(kind=kind)  # type: ignore[arg-type]
    with Producer(writer.address, compress=compression) as producer:
        producer.send("t", TEXT, queue_id=0)
    (request,) = writer.received
    (element,) = decode_elements(request.packed)
    assert request.sys_flag == bits
    assert len(element.body) < 500
    assert decompress(element.body, request.sys_flag) == TEXT


def test_small_and_incompressible_bodies_are_not_compressed(writer: FakeWriter) -> None:
    noise = bytes(range(256)) * 16
    with Producer(writer.address, compress=Compression(over_bytes=4096, level=0)) as producer:
        for body in (TEXT[:4095], noise):
            producer.send("t", body, queue_id=0)
    assert [request.sys_flag for request in writer.received] == [0, 0]
    assert [element.body for element in writer.stored[0]] == [TEXT[:4095], noise]


def test_batches_are_not_compressed(writer: FakeWriter) -> None:
    """This holds for batches of the caller, accumulated ones, and all messages of a batch topic."""
    with Producer(writer.address, compress=True, accumulate=Accumulation()) as producer:
        producer.send_batch([Message("t", TEXT)])
        producer.send("t", b"gathered")
        writer.attributes = {"queue.type": "BatchCQ"}
        producer.send("inner", TEXT)
    assert [request.sys_flag for request in writer.received] == [0, 0, 0]


def test_bodies_are_not_compressed_by_default(writer: FakeWriter, producer: Producer) -> None:
    """Readers of stored records get the original bytes."""
    producer.send("t", TEXT, queue_id=0)
    assert writer.stored[0][0].body == TEXT


def test_a_missing_compression_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes when the producer is created, not at the first large body."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pyarrow"):
        Compression(kind="zstd")
    assert Compression(kind="zlib").apply(TEXT)[1] == 0x301


def test_an_unknown_kind_is_refused() -> None:
    """The error lists the available types."""
    with pytest.raises(ValueError, match="zstd"):
        Compression(kind="gzip")  # type: ignore[arg-type]
