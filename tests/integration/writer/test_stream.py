"""AppendStream: many batches in flight, in order, each with its own result; back-pressure; vanished clients."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.builders import wire_batch
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

from .faulty_storage import FaultyStorage
from .harness import Refusal, RunningWriter, stored_records

pytestmark = pytest.mark.integration


def entry(number: int, packed: bytes | None = None, **fields: object) -> pb.AppendStreamRequest.Entry:
    body = b"body %d" % number
    fields.setdefault("queue_id", 0)
    batch = pb.AppendBatchRequest(
        topic="t",
        packed=wire_batch((body, b"", 0), (body + b"b", b"", 0)) if packed is None else packed,
        **fields,  # type: ignore[arg-type]
    )
    return pb.AppendStreamRequest.Entry(correlation_id=number, batch=batch)


def frame(*entries: pb.AppendStreamRequest.Entry) -> pb.AppendStreamRequest:
    return pb.AppendStreamRequest(batches=entries)


def results(writer: RunningWriter, frames: list[pb.AppendStreamRequest]) -> list[pb.AppendStreamResponse.Result]:
    return [result for response in writer.log.AppendStream(iter(frames)) for result in response.results]


def test_batches_of_a_stream_are_appended_in_order(writer: RunningWriter) -> None:
    """Frames of several batches are sent at once: places ascend in the order of sends, answers name their batch."""
    answers = results(writer, [frame(*(entry(10 * i + j) for j in range(10))) for i in range(50)])
    assert sorted(answer.correlation_id for answer in answers) == list(range(500))
    by_number = {answer.correlation_id: answer.appended for answer in answers}
    assert [by_number[i].queue_offset for i in range(500)] == list(range(0, 1000, 2))
    places = [by_number[i].physical_offset for i in range(500)]
    assert places == sorted(places)
    assert [record.body for record in stored_records(writer.root)][::2] == [b"body %d" % i for i in range(500)]


def test_an_invalid_batch_in_the_middle_gets_its_own_status(writer: RunningWriter) -> None:
    """It does not end the stream, and its neighbours are stored densely."""
    answers = {
        answer.correlation_id: answer
        for answer in results(
            writer, [frame(entry(1), entry(2, b"rubbish"), entry(3, expected_next_offset=77)), frame(entry(4))]
        )
    }
    assert [answers[i].WhichOneof("outcome") for i in (1, 2, 3, 4)] == ["appended", "error", "error", "appended"]
    malformed, mismatch = Refusal(answers[2].error), Refusal(answers[3].error)
    assert (malformed.code.name, malformed.reason) == ("INVALID_ARGUMENT", "BATCH_MALFORMED")
    assert (mismatch.reason, mismatch.facts["actual"]) == ("NEXT_OFFSET_MISMATCH", "2")
    assert answers[4].appended.queue_offset == 2
    assert len(stored_records(writer.root)) == 4


def test_a_batch_of_four_mebibytes_is_accepted(tmp_path: Path) -> None:
    """The largest legal body is received, stored and read, though gRPC's own limit is lower."""
    body = bytes(range(256)) * (4_194_304 // 256)
    with RunningWriter(tmp_path, commit_log_segment_size_bytes=16 << 20) as writer:
        (answer,) = results(writer, [frame(entry(1, wire_batch((body, b"", 0))))])
        assert answer.WhichOneof("outcome") == "appended"
    assert stored_records(tmp_path)[0].body == body


def test_too_many_bytes_in_flight_are_refused_with_a_time_to_retry(tmp_path: Path) -> None:
    """While the disk does not answer, batches beyond the limit get RESOURCE_EXHAUSTED; later they pass."""
    storage = FaultyStorage()
    limits = {"max_in_flight_bytes": 55_000, "max_message_size_bytes": 50_000, "max_stream_in_flight_bytes": 1 << 20}
    with RunningWriter(tmp_path, storage, retry_after_ms=70, **limits) as writer:
        writer.append("t", wire_batch((b"first", b"", 0)))
        storage.fdatasync_gate.clear()
        wire = wire_batch((bytes(9_000), b"", 0))
        frames: queue.Queue[pb.AppendStreamRequest | None] = queue.Queue()
        for i in range(10):
            frames.put(frame(entry(i, wire)))
        responses = writer.log.AppendStream(iter(frames.get, None))
        refused = list(next(responses).results)
        while len(refused) < 5:
            refused += next(responses).results
        assert {Refusal(result.error).code for result in refused} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert {Refusal(result.error).reason for result in refused} == {"IN_FLIGHT_LIMIT"}
        assert {Refusal(result.error).retry_after_ms for result in refused} == {70}
        storage.fdatasync_gate.set()
        frames.put(None)
        appended = [result for response in responses for result in response.results]
        assert sorted(result.appended.queue_offset for result in appended) == [1, 2, 3, 4, 5]
        assert writer.append("t", wire).queue_offset == 6


def test_one_stream_waits_instead_of_being_refused(tmp_path: Path) -> None:
    """Beyond its own limit a stream is not read further: everything is stored in the end, in order."""
    storage = FaultyStorage()
    storage.fdatasync_takes_s = 0.01
    with RunningWriter(tmp_path, storage, max_stream_in_flight_bytes=20_000) as writer:
        wire = wire_batch((bytes(9_000), b"", 0))
        answers = results(writer, [frame(entry(i, wire)) for i in range(60)])
        assert [answer.WhichOneof("outcome") for answer in answers] == ["appended"] * 60
        assert [answer.appended.queue_offset for answer in answers] == list(range(60))


def test_one_fdatasync_serves_many_batches(tmp_path: Path) -> None:
    """300 batches that arrive during a slow sync need far fewer syncs than 300."""
    storage = FaultyStorage()
    storage.fdatasync_takes_s = 0.005
    with RunningWriter(tmp_path, storage) as writer:
        writer.append("t", wire_batch((b"x", b"", 0)))
        before = storage.fdatasyncs
        assert len(results(writer, [frame(entry(i)) for i in range(300)])) == 300
        assert storage.fdatasyncs - before < 100


def test_a_writer_continues_after_a_client_disconnects(writer: RunningWriter) -> None:
    """Its sent batches may be stored, but only whole ones; the next client appends after them."""

    def endless() -> Iterator[pb.AppendStreamRequest]:
        for i in range(100_000):
            yield frame(entry(i))

    for _ in range(3):
        channel = grpc.insecure_channel(writer.address)
        call = CommitLogServiceStub(channel).AppendStream(endless())  # type: ignore[no-untyped-call, unused-ignore]
        next(call)
        call.cancel()
        channel.close()
    answer = writer.append("t", wire_batch((b"after", b"", 0)))
    records = stored_records(writer.root)
    assert [record.queue_offset for record in records] == list(range(len(records)))
    assert answer.queue_offset >= 2
    assert answer.queue_offset % 2 == 0


def test_streams_end_in_order_when_the_writer_stops(tmp_path: Path) -> None:
    """An idle stream does not delay a stop; batches in flight are answered first."""
    with RunningWriter(tmp_path) as writer:
        sent = threading.Event()

        def frames() -> Iterator[pb.AppendStreamRequest]:
            yield frame(entry(1))
            sent.wait(20)

        responses = writer.log.AppendStream(frames())
        assert next(responses).results[0].appended.queue_offset == 0
        started = time.monotonic()
        writer.stop()
        assert time.monotonic() - started < 5
        sent.set()
        assert not list(responses)
    assert writer.failure is None
