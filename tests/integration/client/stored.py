"""A writer's stored records, read through ReadLog and decoded by the plain format module."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from tidemark.client.wire.channel import open_channel
from tidemark.format.record import Magic, Record, decode_record
from tidemark.v1 import commit_log_pb2
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub


def read_log(address: str, *, start: int = 0) -> bytes:
    """Return the committed bytes of the log from *start* to its present end."""
    with open_channel(address) as channel:
        return b"".join(part.data for part in _parts(channel, start))


def _parts(channel: grpc.Channel, start: int) -> Iterator[commit_log_pb2.ReadLogResponse]:
    stub = CommitLogServiceStub(channel)
    yield from stub.ReadLog(commit_log_pb2.ReadLogRequest(physical_offset=start))


def records(address: str, topic: str) -> list[Record]:
    """Return all records of *topic* in the order of the log."""
    data = memoryview(read_log(address))
    found = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if int.from_bytes(data[at + 4 : at + 8], "big", signed=True) != Magic.BLANK:
            record = decode_record(data[at:])
            if record.topic == topic.encode():
                found.append(record)
        at += size
    return found
