"""Batches in remoting frames, against a peer over real TCP."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.unit.client.fake_writer import FakeWriter, Gate, refusal
from tests.unit.client.wire.remoting_peer import FAULTS, Answer, EndError, RemotingPeer, appending, end, peer
from tests.unit.client.wire.remoting_sends import (
    LONG_S,
    batch,
    begin,
    bodies,
    has_thread,
    send,
    send_alone,
    stream_to,
)
from tests.waiting import until
from tidemark.client.wire import remoting_stream
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.client.wire.frame_socket import FrameSocket
from tidemark.client.wire.pending_batches import PendingLimits, Repeat
from tidemark.errors import (
    DeadlineExceededError,
    QueueIllegalError,
    TokenFileError,
    UnauthenticatedError,
    WriterUnreachableError,
)
from tidemark.remoting.codes import VERSION, Language, ResponseCode, TidemarkCode
from tidemark.remoting.frame import ONE_WAY, Frame, answer_to
from tidemark.remoting.framing import encode
from tidemark.remoting.refusal import FACTS, REASON, TOKEN
from tidemark.tls.credentials import Credentials
from tidemark.v1.commit_log_pb2 import AppendStreamResponse


@pytest.fixture
def writer() -> FakeWriter:
    return FakeWriter()


@pytest.fixture
def served(writer: FakeWriter) -> Iterator[RemotingPeer]:
    with peer(appending(writer)) as made:
        yield made


@pytest.fixture(autouse=True, params=[send, send_alone])
def way_of_sending(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `send` be each of the two ways in which a caller waits: they have the same results, errors and repeats."""
    monkeypatch.setattr(sys.modules[__name__], "send", request.param)


def test_a_lone_send_uses_no_other_thread(writer: FakeWriter, served: RemotingPeer) -> None:
    """The caller's thread sends and reads."""
    with stream_to(served.address) as stream:
        assert [send(stream, f"{n}").queue_offset for n in range(3)] == [0, 1, 2]
        assert not has_thread(stream)
    assert bodies(writer) == [b"0", b"1", b"2"]
    assert served.accepted == 1


def test_asynchronous_sends_are_answered_without_a_waiting_caller(writer: FakeWriter, served: RemotingPeer) -> None:
    with stream_to(served.address) as stream:
        futures = [begin(stream, f"{n}") for n in range(200)]
        assert [future.result(LONG_S).queue_offset for future in futures] == list(range(200))
        assert has_thread(stream)
        assert stream.is_idle or stream.flush(LONG_S)
    assert not has_thread(stream)


def test_senders_of_many_threads_each_get_their_own_answer(writer: FakeWriter, served: RemotingPeer) -> None:
    found: dict[int, list[int]] = {}

    def run(thread: int) -> None:
        results = [
            send(stream, f"{thread}-{n}") if n % 3 else begin(stream, f"{thread}-{n}").result(LONG_S) for n in range(60)
        ]
        found[thread] = [result.queue_offset for result in results]

    with stream_to(served.address) as stream:
        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG_S)
    stored = bodies(writer)
    for number, offsets in found.items():
        assert [stored[offset] for offset in offsets] == [b"%d-%d" % (number, n) for n in range(60)]
    assert len(stored) == 480


def test_a_waiting_sender_reads_for_one_that_has_left(writer: FakeWriter, served: RemotingPeer) -> None:
    """A sender that is interrupted while it waits leaves its batch to the stream's own thread, and to `flush`."""
    with stream_to(served.address) as stream:
        send(stream, "first")
        gate = Gate(writer)
        one = batch("left", future=stream.future(AnswerReader.CALLER))
        stream.submit(one)
        assert not has_thread(stream)
        assert gate.reached.wait(LONG_S)
        assert not stream.flush(0.05)
        assert len(stream.unanswered()) == 1
        gate.open()
        assert stream.flush(LONG_S)
        assert one.future.done()


@pytest.mark.parametrize("where", ["send", "receive", "answered"])
def test_an_interrupted_send_is_stored_once_and_no_later_answer_is_lost(
    writer: FakeWriter, served: RemotingPeer, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """KeyboardInterrupt comes in the middle of a frame: after a part was sent, or after bytes were received."""
    with stream_to(served.address) as stream:
        send(stream, "first")
        connection = stream._socket
        assert connection is not None
        with monkeypatch.context() as patch:
            if where == "send":

                def cut(data: bytes) -> None:
                    connection._socket.send(data[: len(data) // 2])
                    raise KeyboardInterrupt

                patch.setattr(connection, "send_now", cut)
            elif where == "receive":

                def lose(timeout_s: float) -> bytes:
                    if FrameSocket.receive_bytes(connection, timeout_s):
                        raise KeyboardInterrupt
                    return b""

                patch.setattr(connection, "receive_bytes", lose)
            else:
                patch.setattr(stream, "_settle", _interrupt)
                patch.setattr(stream, "_acknowledged", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                send(stream, "second")
        assert stream.flush(LONG_S)
        assert not stream.unanswered()
        assert send(stream, "third").queue_offset == 2
    assert bodies(writer) == [b"first", b"second", b"third"]
    assert served.accepted == 2


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_room_that_an_interrupted_send_occupies_becomes_free(writer: FakeWriter, served: RemotingPeer) -> None:
    """No caller waits for its answer."""
    with stream_to(served.address, limits=PendingLimits(1 << 20, 1)) as stream:
        stream.submit(batch("left", future=stream.future(AnswerReader.CALLER)))
        assert send(stream, "next").queue_offset == 1


def once_then(writer: FakeWriter, fault: Answer) -> Answer:
    """Return a function that answers the first request with *fault*, and the others properly."""
    properly, is_first = appending(writer), [True]

    def answer(frame: Frame) -> Frame | bytes | None:
        if is_first.pop() if is_first else False:
            return fault(frame)
        return properly(frame)

    return answer


def end_after_storing(writer: FakeWriter) -> Answer:
    store = appending(writer)

    def answer(frame: Frame) -> None:
        store(frame)
        raise EndError

    return answer


def half(frame: Frame) -> bytes:
    """Send half of an answer; then the peer ends."""
    return encode(answer_to(frame, 0, body=bytes(100)))[:60]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_batch_on_a_connection_that_ends_is_sent_again_on_the_next(
    writer: FakeWriter, fault: str, is_awaited: bool
) -> None:
    with peer(once_then(writer, FAULTS[fault])) as served, stream_to(served.address) as stream:
        result = send(stream, "a") if is_awaited else begin(stream, "a").result(LONG_S)
        assert (result.queue_offset, result.duplicate) == (0, False)
        assert served.accepted == 2
    assert bodies(writer) == [b"a"]


def test_a_batch_that_was_stored_before_the_end_is_stored_once(writer: FakeWriter) -> None:
    with peer(once_then(writer, end_after_storing(writer))) as served, stream_to(served.address) as stream:
        assert send(stream, "a").duplicate
        assert send(stream, "b").queue_offset == 1
    assert bodies(writer) == [b"a", b"b"]


def test_a_connection_that_ends_within_an_answer_is_replaced(writer: FakeWriter) -> None:
    with peer(once_then(writer, half)) as served, stream_to(served.address) as stream:
        future = begin(stream, "a")
        until(lambda: served.frames)
        time.sleep(0.05)
        served.end_connections()
        assert future.result(LONG_S).queue_offset == 0


def test_a_message_that_must_not_be_repeated_fails_with_its_connection(writer: FakeWriter) -> None:
    with peer(once_then(writer, end)) as served, stream_to(served.address) as stream:
        with pytest.raises(WriterUnreachableError):
            begin(stream, "a", repeat=Repeat.NEVER).result(LONG_S)
        assert begin(stream, "b", repeat=Repeat.NEVER).result(LONG_S).queue_offset == 0
    assert bodies(writer) == [b"b"]


@pytest.mark.parametrize("repeat", [Repeat.NEVER, Repeat.ELSEWHERE])
def test_a_connection_that_ended_while_idle_is_replaced_before_the_next_batch(
    writer: FakeWriter, served: RemotingPeer, repeat: Repeat
) -> None:
    """A service closes idle connections; a batch that was sent on one might be stored, so it could not move."""
    with stream_to(served.address) as stream:
        send(stream, "a")
        served.end_connections()
        connection = stream._socket
        assert connection is not None
        until(connection.has_input)
        one = batch("b", repeat=repeat)
        stream.submit(one)
        assert one.future.result(LONG_S).queue_offset == 1
        assert not one.maybe_stored


def test_a_peer_that_ends_every_connection_is_tried_with_pauses() -> None:
    with peer(end) as served, stream_to(served.address) as stream:
        with pytest.raises(DeadlineExceededError):
            send(stream, "a", seconds=0.5)
        assert 2 <= served.accepted <= 11


def test_an_unreachable_writer_fails_at_the_deadline(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served:
        address = served.address
    with stream_to(address) as stream, pytest.raises(WriterUnreachableError):
        send(stream, "a", seconds=0.2)


def test_a_batch_that_may_move_is_returned_when_the_connection_is_refused(writer: FakeWriter) -> None:
    with peer(appending(writer)) as served:
        address = served.address
    with stream_to(address) as stream, pytest.raises(WriterUnreachableError, match="nothing was sent"):
        begin(stream, "a", repeat=Repeat.ELSEWHERE).result(LONG_S)


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_silent_writer_is_given_up_at_the_deadline_and_its_connection_replaced(
    writer: FakeWriter, is_awaited: bool
) -> None:
    """The next batch does not wait on a connection that may be dead."""
    with peer(once_then(writer, lambda _: None)) as served, stream_to(served.address) as stream:
        with pytest.raises(DeadlineExceededError):
            send(stream, "a", seconds=0.1) if is_awaited else begin(stream, "a", seconds=0.1).result(LONG_S)
        assert send(stream, "b").queue_offset == 0
        assert served.accepted == 2


def test_an_expired_batch_does_not_end_a_connection_that_answers_others(writer: FakeWriter) -> None:
    def second_is_lost(frame: Frame) -> Frame | bytes | None:
        return None if len(reached.frames) == 2 else appending(writer)(frame)

    with peer(second_is_lost) as reached, stream_to(reached.address) as stream:
        send(stream, "first")
        lost = begin(stream, "lost", seconds=0.3)
        assert send(stream, "a").queue_offset == 1
        assert isinstance(lost.exception(LONG_S), DeadlineExceededError)
        assert send(stream, "b").queue_offset == 2
        assert reached.accepted == 1


def test_a_frame_that_the_writer_does_not_take_is_given_up_at_the_first_deadline(
    writer: FakeWriter, served: RemotingPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stream_to(served.address) as stream:
        send(stream, "first")
        gate = Gate(writer)
        first = begin(stream, "second", seconds=5)
        connection = stream._socket
        assert connection is not None
        given: list[float] = []

        def refuse(_: bytes, timeout_s: float) -> None:
            given.append(timeout_s)
            raise TimeoutError

        with monkeypatch.context() as patch:
            patch.setattr(connection, "send_now", lambda data: data)
            patch.setattr(connection, "send", refuse)
            third = begin(stream, "third")
        gate.open()
        assert [future.result(LONG_S).queue_offset for future in (first, third)] == [1, 2]
        assert 0 < given[0] <= 5
    assert bodies(writer) == [b"first", b"second", b"third"]


def test_a_temporary_refusal_of_one_batch_is_repeated(writer: FakeWriter, served: RemotingPeer) -> None:
    refused = iter([True, True])
    writer.on_entry = lambda entry: (
        AppendStreamResponse.Result(
            correlation_id=entry.correlation_id, error=refusal("IN_FLIGHT_LIMIT", retry_after_ms=20)
        )
        if next(refused, False)
        else None
    )
    with stream_to(served.address) as stream:
        assert send(stream, "a").queue_offset == 0
        assert not has_thread(stream)
    assert len(served.frames) == 3


def refusing(frame: Frame, reason: str, **facts: object) -> Frame:
    return answer_to(frame, 1, f"refused: {reason}", {REASON: reason, FACTS: orjson.dumps(facts).decode()})


def test_the_refusal_of_a_frame_refuses_its_batches_and_no_others(writer: FakeWriter) -> None:
    with (
        peer(once_then(writer, lambda frame: refusing(frame, "UNAUTHENTICATED", principal="x"))) as served,
        stream_to(served.address) as stream,
    ):
        with pytest.raises(UnauthenticatedError, match="refused") as refused:
            send(stream, "a")
        assert refused.value.facts == {"principal": "x"}
        assert send(stream, "b").queue_offset == 0
        assert served.accepted == 1


def test_a_frame_above_a_rate_limit_is_repeated_after_the_time_that_the_writer_asks_for(writer: FakeWriter) -> None:
    times: list[float] = []
    proper = appending(writer)

    def answer(frame: Frame) -> Frame | bytes | None:
        times.append(time.monotonic())
        return refusing(frame, "RATE_LIMITED", retry_after_ms=300) if len(times) == 1 else proper(frame)

    with peer(answer) as served, stream_to(served.address) as stream:
        assert send(stream, "a").queue_offset == 0
    assert times[1] - times[0] >= 0.3


def test_an_unknown_refusal_is_an_error(writer: FakeWriter) -> None:
    with (
        peer(once_then(writer, lambda frame: answer_to(frame, ResponseCode.SYSTEM_ERROR, "a bug"))) as served,
        stream_to(served.address) as stream,
        pytest.raises(Exception, match="a bug"),
    ):
        send(stream, "a")


def test_each_request_has_the_present_token(writer: FakeWriter, served: RemotingPeer, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    with stream_to(served.address, credentials=Credentials(token_file=path)) as stream:
        send(stream, "a")
        path.write_text("second\n")
        send(stream, "b")
        path.unlink()
        with pytest.raises(TokenFileError):
            send(stream, "c")
        path.write_text("third\n")
        send(stream, "d")
    assert [frame.fields for frame in served.frames] == [{TOKEN: "one"}, {TOKEN: "second"}, {TOKEN: "third"}]
    assert {frame.code for frame in served.frames} == {TidemarkCode.APPEND}
    assert bodies(writer) == [b"a", b"b", b"d"]
    assert served.accepted == 1


def test_a_request_of_the_server_is_ignored(writer: FakeWriter) -> None:
    proper = appending(writer)

    def answer(frame: Frame) -> bytes:
        answered = proper(frame)
        assert isinstance(answered, Frame)
        return encode(Frame(40, ONE_WAY, 1, Language.JAVA, VERSION)) + encode(answered)

    with (
        peer(answer) as served,
        stream_to(served.address) as stream,
    ):
        assert send(stream, "a").queue_offset == 0


def test_close_ends_a_sender_that_waits(writer: FakeWriter, served: RemotingPeer) -> None:
    gate = Gate(writer)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            send(stream, "a")
        except DeadlineExceededError as error:
            errors.append(error)

    with stream_to(served.address) as stream:
        sender = threading.Thread(target=run)
        sender.start()
        assert gate.reached.wait(LONG_S)
        stream.close(time.monotonic())
        sender.join(LONG_S)
        gate.open()
    assert len(errors) == 1


def test_a_refusal_does_not_disturb_the_batches_of_the_same_frame(writer: FakeWriter, served: RemotingPeer) -> None:
    writer.on_entry = lambda entry: (
        AppendStreamResponse.Result(correlation_id=entry.correlation_id, error=refusal("QUEUE_ID_ILLEGAL"))
        if entry.batch.request_id == "bad"
        else None
    )
    with stream_to(served.address) as stream:
        futures = {name: begin(stream, name) for name in ("a", "bad", "b")}
        assert isinstance(futures["bad"].exception(LONG_S), QueueIllegalError)
        assert [futures[name].result(LONG_S).queue_offset for name in ("a", "b")] == [0, 1]


def test_the_own_thread_reads_on_for_a_moment(served: RemotingPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After it the next lone send reads for itself again."""
    monkeypatch.setattr(remoting_stream, "_LINGER_S", 0.001)
    with stream_to(served.address) as stream:
        begin(stream, "a").result(LONG_S)
        until(lambda: not stream._is_thread_wanted)
        reading: list[str] = []
        connection = stream._socket
        assert connection is not None

        def note(wait_s: float) -> bytes:
            reading.append(threading.current_thread().name)
            return FrameSocket.receive_bytes(connection, wait_s)

        monkeypatch.setattr(connection, "receive_bytes", note)
        send(stream, "b")
        assert set(reading) == {threading.current_thread().name}


def appending_while(answering: threading.Event, writer: FakeWriter) -> Answer:
    """Return a function that waits for *answering* before it appends to *writer*."""
    answer = appending(writer)

    def later(frame: Frame) -> Frame | bytes | None:
        answering.wait(LONG_S)
        return answer(frame)

    return later


def test_batches_gather_while_several_frames_are_unanswered(writer: FakeWriter) -> None:
    """A frame costs both sides more than the batches in it. An answer sends the gathered batches."""
    answering = threading.Event()
    with peer(appending_while(answering, writer)) as served, stream_to(served.address) as stream:
        answering.set()
        send(stream, "first")
        answering.clear()
        futures = [begin(stream, f"{n}") for n in range(100)]
        assert not any(future.done() for future in futures)
        answering.set()
        assert [future.result(LONG_S).queue_offset for future in futures] == list(range(1, 101))
        assert len(served.frames) == 1 + 6
    assert bodies(writer) == [b"first", *(b"%d" % n for n in range(100))]


def test_enough_bytes_are_sent_at_once(writer: FakeWriter) -> None:
    answering = threading.Event()
    with peer(appending_while(answering, writer)) as served, stream_to(served.address) as stream:
        answering.set()
        send(stream, "first")
        answering.clear()
        futures = [begin(stream, f"{n}", body=bytes(200_000)) for n in range(12)]
        answering.set()
        assert [future.result(LONG_S).queue_offset for future in futures] == list(range(1, 13))
        assert [len(frame.body) // 200_000 for frame in served.frames] == [0, 1, 1, 1, 1, 1, 5, 2]
