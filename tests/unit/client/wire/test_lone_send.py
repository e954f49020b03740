"""Batches that are alone on their connection, against a peer over real TCP.

`test_remoting_stream` runs its tests with lone sends, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.unit.client.fake_writer import FakeWriter, Gate
from tests.unit.client.wire.remoting_peer import FAULTS, RemotingPeer, appending, peer
from tests.unit.client.wire.remoting_sends import LONG_S, batch, begin, bodies, send, send_alone, stream_to
from tests.waiting import until
from tidemark.client.send_result import SendResult
from tidemark.client.wire.lone_send import LoneSendStream
from tidemark.errors import DeadlineExceededError, StoreClosedError, StoreError
from tidemark.remoting.codes import VERSION, Language
from tidemark.remoting.frame import ONE_WAY, Frame, answer_to
from tidemark.remoting.framing import encode
from tidemark.tls.credentials import Credentials
from tidemark.v1.commit_log_pb2 import PUT_STATUS_PUT_OK, AppendBatchResponse, AppendStreamResponse


@pytest.fixture
def writer() -> FakeWriter:
    return FakeWriter()


@pytest.fixture
def served(writer: FakeWriter) -> Iterator[RemotingPeer]:
    with peer(appending(writer)) as made:
        yield made


@pytest.fixture
def stream(served: RemotingPeer) -> Iterator[LoneSendStream]:
    """Return a stream that is connected."""
    with stream_to(served.address) as made:
        send(made, "connects")
        yield made


def require_nothing_in_flight(stream: LoneSendStream) -> None:
    pending = stream._pending
    assert stream.is_idle
    assert stream.flush(0)
    assert not (stream._frames or stream.unanswered() or pending._deadlines)
    assert (pending.bytes_in_flight, pending.messages_in_flight, pending._sent, pending.ready_bytes) == (0, 0, 0, 0)


@pytest.mark.parametrize("credentials", [Credentials(), Credentials(token="secret")])
def test_a_lone_send_has_the_frames_and_results_of_any_send(credentials: Credentials) -> None:
    outcomes: list[tuple[list[Frame], list[SendResult]]] = []
    for way in (send, send_alone):
        with peer(appending(FakeWriter())) as served, stream_to(served.address, credentials=credentials) as stream:
            send(stream, "connects")
            results = [way(stream, name, message_ids=(name,)) for name in ("a", "b" * 300, "a")]
            outcomes.append((served.frames, results))
    assert outcomes[0] == outcomes[1]


def test_a_lone_send_completes_no_future_and_leaves_nothing_behind(stream: LoneSendStream) -> None:
    one = batch("a", future=stream.driven_future(()))
    assert stream.send_alone(one).queue_offset == 1
    assert one.correlation_id
    assert not one.future.done()
    require_nothing_in_flight(stream)


def test_a_lone_send_is_in_flight_until_it_is_answered(writer: FakeWriter, stream: LoneSendStream) -> None:
    gate = Gate(writer)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send_alone, stream, "a")
        assert gate.reached.wait(LONG_S)
        assert not stream.is_idle
        assert len(stream.unanswered()) == 1
        assert stream._pending.messages_in_flight == 1
        with ThreadPoolExecutor(1) as waiting:
            flushed = waiting.submit(stream.flush)
            until(lambda: stream._waiting_for_room)
            gate.open()
            assert flushed.result(LONG_S)
        assert sent.result(LONG_S).queue_offset == 1
    require_nothing_in_flight(stream)


def test_a_lone_send_on_a_closed_stream_is_refused(stream: LoneSendStream) -> None:
    assert stream.retire()
    for _ in range(2):
        with pytest.raises(StoreClosedError):
            send_alone(stream, "a")
        stream.close()


def test_a_lone_send_that_is_given_up_fails_though_its_answer_arrives(
    writer: FakeWriter, stream: LoneSendStream
) -> None:
    gate = Gate(writer)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send_alone, stream, "a")
        assert gate.reached.wait(LONG_S)
        with stream._lock:
            (given_up,) = stream._pending.drain()
        gate.open()
        given_up.future.set_exception(DeadlineExceededError("given up"))
        with pytest.raises(DeadlineExceededError, match="given up"):
            sent.result(LONG_S)


def test_failure_callbacks_are_called_with_a_failure_only(writer: FakeWriter, stream: LoneSendStream) -> None:
    failed: list[Future[SendResult]] = []
    assert stream.send_alone(batch("a", future=stream.driven_future([failed.append]))).queue_offset == 1
    assert failed == []
    gate = Gate(writer)
    one = batch("b", seconds=0.05, future=stream.driven_future([failed.append]))
    with pytest.raises(DeadlineExceededError):
        stream.send_alone(one)
    gate.open()
    assert failed == [one.future]


def test_an_answer_that_is_not_understood_fails_its_send_only(
    writer: FakeWriter, served: RemotingPeer, stream: LoneSendStream
) -> None:
    writer.on_entry = lambda entry: AppendStreamResponse.Result(
        correlation_id=entry.correlation_id,
        appended=AppendBatchResponse(status=99),  # type: ignore[arg-type]
    )
    with pytest.raises(StoreError, match="not understood"):
        send_alone(stream, "a")
    writer.on_entry = lambda _: None
    assert send_alone(stream, "b").queue_offset == 1
    assert served.accepted == 1


def test_an_answer_without_results_answers_nothing(writer: FakeWriter) -> None:
    proper, requests = appending(writer), iter(range(1, 100))
    with (
        peer(lambda frame: proper(frame) if next(requests) == 1 else answer_to(frame, 0)) as served,
        stream_to(served.address) as stream,
    ):
        send(stream, "connects")
        with pytest.raises(DeadlineExceededError):
            send_alone(stream, "a", seconds=0.1)


def test_all_results_of_an_answer_count(writer: FakeWriter) -> None:
    """The service may answer the batches of several frames in one."""
    proper, requests = appending(writer), iter(range(1, 100))
    held: list[AppendStreamResponse] = []

    def answer(frame: Frame) -> Frame | None:
        answered = proper(frame)
        assert isinstance(answered, Frame)
        held.append(AppendStreamResponse.FromString(bytes(answered.body)))
        return answered if next(requests) == 1 else None

    with peer(answer) as served, stream_to(served.address) as stream, ThreadPoolExecutor(1) as pool:
        send(stream, "connects")
        lone = pool.submit(send_alone, stream, "lone")
        until(lambda: len(held) == 2)
        other = begin(stream, "other")
        until(lambda: len(held) == 3)
        both = AppendStreamResponse(results=[*held[1].results, *held[2].results])
        served.connections[0].sendall(encode(answer_to(served.frames[1], 0, body=both.SerializeToString())))
        assert (lone.result(LONG_S).queue_offset, other.result(LONG_S).queue_offset) == (1, 2)


def test_an_answer_to_another_batch_is_not_taken_for_the_own_one(writer: FakeWriter, stream: LoneSendStream) -> None:
    writer.on_entry = lambda entry: AppendStreamResponse.Result(
        correlation_id=entry.correlation_id + 1, appended=AppendBatchResponse(status=PUT_STATUS_PUT_OK)
    )
    with pytest.raises(DeadlineExceededError):
        send_alone(stream, "a", seconds=0.1)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lone_send_on_a_connection_that_ends_is_sent_again_on_the_next(writer: FakeWriter, fault: str) -> None:
    proper, requests = appending(writer), iter(range(1, 100))
    with (
        peer(lambda frame: FAULTS[fault](frame) if next(requests) == 2 else proper(frame)) as served,
        stream_to(served.address) as stream,
    ):
        send(stream, "connects")
        result = send_alone(stream, "a")
        assert (result.queue_offset, result.duplicate) == (1, False)
        assert send_alone(stream, "b").queue_offset == 2
        assert served.accepted == 2
    assert bodies(writer) == [b"connects", b"a", b"b"]


@pytest.mark.parametrize("way", [send, send_alone])
def test_a_part_of_a_frame_after_an_answer_is_kept_for_the_next(
    writer: FakeWriter, way: Callable[[LoneSendStream, str], SendResult]
) -> None:
    unasked = encode(Frame(40, ONE_WAY, 1, Language.JAVA, VERSION))
    proper, requests = appending(writer), iter(range(1, 100))

    def answer(frame: Frame) -> bytes:
        answered = proper(frame)
        assert isinstance(answered, Frame)
        number = next(requests)
        return (unasked[20:] if number == 3 else b"") + encode(answered) + (unasked[:20] if number == 2 else b"")

    with peer(answer) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        assert [way(stream, name).queue_offset for name in ("a", "b", "c")] == [1, 2, 3]
        assert served.accepted == 1


@pytest.mark.parametrize("way", [send, send_alone])
def test_bytes_within_another_frame_are_not_taken_for_an_answer(
    writer: FakeWriter, way: Callable[[LoneSendStream, str], SendResult]
) -> None:
    """They arrive alone, after the beginning of their frame."""
    proper, requests, held = appending(writer), iter(range(1, 100)), []

    def answer(frame: Frame) -> Frame | None:
        answered = proper(frame)
        assert isinstance(answered, Frame)
        if next(requests) == 1:
            return answered
        held.append(answered)
        return None

    with peer(answer) as served, stream_to(served.address) as stream, ThreadPoolExecutor(1) as pool:
        send(stream, "connects")
        sent = pool.submit(way, stream, "a")
        until(lambda: held)
        false = AppendStreamResponse.FromString(bytes(held[0].body))
        false.results[0].appended.queue_offset = 77
        body = encode(answer_to(served.frames[1], 0, body=false.SerializeToString()))
        unasked = encode(Frame(40, ONE_WAY, 1, Language.JAVA, VERSION, body=body))
        served.connections[0].sendall(unasked[: -len(body)])
        until(lambda: stream._socket is not None and not stream._socket.is_between_frames)
        served.connections[0].sendall(body)
        until(lambda: sent.done() or (stream._socket is not None and stream._socket.is_between_frames))
        served.connections[0].sendall(encode(held[0]))
        assert sent.result(LONG_S).queue_offset == 1


def test_an_answer_in_two_pieces_is_whole(writer: FakeWriter) -> None:
    proper, requests, rest = appending(writer), iter(range(1, 100)), []

    def answer(frame: Frame) -> bytes:
        answered = proper(frame)
        assert isinstance(answered, Frame)
        data = encode(answered)
        if next(requests) == 1:
            return data
        rest.append(data[50:])
        return data[:50]

    with peer(answer) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(send_alone, stream, "a")
            until(lambda: stream._socket is not None and not stream._socket.is_between_frames)
            served.connections[0].sendall(rest[0])
            assert sent.result(LONG_S).queue_offset == 1
        assert served.accepted == 1


def held_until_the_next(writer: FakeWriter, *, answers_next: bool) -> Callable[[Frame], bytes | None]:
    """Return a function that answers the second request together with the third, or instead of it."""
    proper, requests, held = appending(writer), iter(range(1, 100)), []

    def answer(frame: Frame) -> bytes | None:
        number = next(requests)
        answered = proper(frame)
        assert isinstance(answered, Frame)
        if number == 2:
            held.append(encode(answered))
            return None
        own = encode(answered) if number != 3 or answers_next else b""
        return (held.pop() if held else b"") + own

    return answer


@pytest.mark.parametrize("is_within_the_send", [False, True])
def test_a_batch_of_another_thread_is_sent_and_read_meanwhile(
    writer: FakeWriter, monkeypatch: pytest.MonkeyPatch, is_within_the_send: bool
) -> None:
    """The lone send's answer comes only after the other batch has arrived."""
    with peer(held_until_the_next(writer, answers_next=True)) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        connection = stream._socket
        assert connection is not None
        others: list[Future[SendResult]] = []
        proper = connection.send_now

        def send_and_begin(data: bytes) -> bytes | memoryview:
            if not others:
                others.append(Future())
                others[0] = begin(stream, "other")
            return proper(data)

        with ThreadPoolExecutor(1) as pool:
            if is_within_the_send:
                monkeypatch.setattr(connection, "send_now", send_and_begin)
            sent = pool.submit(send_alone, stream, "lone")
            until(lambda: len(served.frames) == (3 if is_within_the_send else 2))
            if not is_within_the_send:
                others.append(begin(stream, "other"))
            assert sent.result(LONG_S).queue_offset == 1
            assert others[0].result(LONG_S).queue_offset == 2
        assert bodies(writer) == [b"connects", b"lone", b"other"]
        assert served.accepted == 1


def test_a_lone_send_leaves_the_answer_of_another_waiting_caller_to_the_streams_thread(writer: FakeWriter) -> None:
    """The other caller cannot read while the lone send does, so the stream's thread completes its future."""
    proper, requests, held = appending(writer), iter(range(1, 100)), []

    def answer(frame: Frame) -> bytes | None:
        answered = proper(frame)
        assert isinstance(answered, Frame)
        if next(requests) == 1:
            return encode(answered)
        held.append(encode(answered))
        return None

    with peer(answer) as served, stream_to(served.address) as stream, ThreadPoolExecutor(2) as pool:
        send(stream, "connects")
        lone = pool.submit(send_alone, stream, "lone")
        until(lambda: len(held) == 1)
        other = pool.submit(send, stream, "other")
        until(lambda: len(held) == 2)
        served.connections[0].sendall(held[0])
        assert lone.result(LONG_S).queue_offset == 1
        served.connections[0].sendall(held[1])
        assert other.result(LONG_S).queue_offset == 2


def test_a_lone_answer_shows_that_the_connection_is_alive(writer: FakeWriter) -> None:
    """The other batch expires, but the connection was heard of since it was given."""
    with peer(held_until_the_next(writer, answers_next=False)) as served, stream_to(served.address) as stream:
        send(stream, "connects")
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(send_alone, stream, "lone")
            until(lambda: len(served.frames) == 2)
            lost = begin(stream, "lost", seconds=0.3)
            assert sent.result(LONG_S).queue_offset == 1
        assert isinstance(lost.exception(LONG_S), DeadlineExceededError)
        assert send_alone(stream, "a").queue_offset == 3
        assert served.accepted == 1


def test_a_send_with_a_short_deadline_fails_in_time(writer: FakeWriter, stream: LoneSendStream) -> None:
    """Its wait for the first bytes is no longer than its deadline; 0.2 s are within the longest wait of 0.25 s."""
    gate = Gate(writer)
    waited: list[float] = []
    connection = stream._socket
    assert connection is not None
    proper = connection.receive_bytes

    def note(timeout_s: float) -> bytes:
        waited.append(timeout_s)
        return proper(timeout_s)

    connection.receive_bytes = note  # type: ignore[method-assign]
    with pytest.raises(DeadlineExceededError):
        send_alone(stream, "a", seconds=0.2)
    gate.open()
    assert waited[0] <= 0.2


def test_lone_sends_of_threads_in_turn_are_each_answered(writer: FakeWriter, stream: LoneSendStream) -> None:
    """Each thread finds the connection idle or busy, as it happens."""
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda n: send_alone(stream, f"{n}"), range(400)))
    stored = bodies(writer)
    assert [stored[result.queue_offset] for result in results] == [b"%d" % n for n in range(400)]
    assert len(stored) == 401
    deadline = time.monotonic() + LONG_S
    while not stream.is_idle:
        assert time.monotonic() < deadline
    require_nothing_in_flight(stream)
