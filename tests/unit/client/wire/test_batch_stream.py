"""What both transports share, with a transport that keeps the batches."""

from __future__ import annotations

import threading
import time

import pytest

from tests.unit.client.fake_writer import refusal
from tidemark.client.send_result import SendStatus
from tidemark.client.wire.batch_stream import BatchStream
from tidemark.client.wire.pending_batches import Pending, PendingLimits, Repeat
from tidemark.errors import (
    DeadlineExceededError,
    InFlightLimitError,
    QueueIllegalError,
    StoreClosedError,
    StoreError,
    WriterUnreachableError,
)
from tidemark.format.elements import Element, encode_elements
from tidemark.v1.commit_log_pb2 import (
    PUT_STATUS_FLUSH_SLAVE_TIMEOUT,
    PUT_STATUS_PUT_OK,
    AppendBatchRequest,
    AppendBatchResponse,
    AppendStreamResponse,
)

LONG_S = 20.0
ONE = encode_elements([Element(b"x", b"", 0)])
Result = AppendStreamResponse.Result
LIMITS = PendingLimits(1 << 20, 100)


class Kept(BatchStream):
    """A stream whose answers a test gives.

    added: in the order of `submit`; watched: events to look at; left: the number of members that were left
    """

    def __init__(self, *, limits: PendingLimits = LIMITS, explain: object = None, is_group: bool = False) -> None:
        super().__init__("writer:1", timeout_s=0.05, limits=limits, explain=explain, is_group=is_group)  # type: ignore[arg-type]
        self.left = 0
        self.added: list[Pending] = []
        self.watched: list[float] = []

    def _added(self, pending: Pending) -> None:
        self.added.append(pending)

    def _end(self) -> None:
        pass

    def leave_member(self) -> None:
        self.left += 1

    def _watch(self, event: float) -> None:
        self.watched.append(event)

    def take(self) -> list[Pending]:
        with self._lock:
            return self._pending.take_frame()


def batch(*, seconds: float = LONG_S, repeat: Repeat = Repeat.HERE) -> Pending:
    request = AppendBatchRequest(topic="t", queue_id=0, request_id="r")
    return Pending(request, ONE, len(ONE), time.monotonic() + seconds, repeat=repeat)


def given(stream: BatchStream, *batches: Pending) -> None:
    for one in batches:
        stream.submit(one)


def test_each_answer_completes_the_future_of_its_batch() -> None:
    stream = Kept()
    first, second = batch(), batch()
    given(stream, first, second)
    stream.take()
    stream._settle(
        [
            Result(correlation_id=second.correlation_id, error=refusal("QUEUE_ID_ILLEGAL", {"queue_id": "9"})),
            Result(
                correlation_id=first.correlation_id,
                appended=AppendBatchResponse(
                    queue_offset=7, message_count=1, store_host=bytes(8), status=PUT_STATUS_PUT_OK
                ),
            ),
            Result(correlation_id=99, error=refusal("QUEUE_ID_ILLEGAL")),  # given up before
        ]
    )
    result = first.future.result(0)
    assert (result.queue_offset, result.writer) == (7, "writer:1")
    error = second.future.exception(0)
    assert isinstance(error, QueueIllegalError)
    assert error.facts == {"queue_id": 9}
    assert stream.is_idle


def test_a_temporary_refusal_is_repeated_after_the_time_that_the_writer_asks_for() -> None:
    stream = Kept()
    one = batch()
    given(stream, one)
    stream.take()
    began = time.monotonic()
    stream._settle([Result(correlation_id=one.correlation_id, error=refusal("IN_FLIGHT_LIMIT", retry_after_ms=700))])
    assert not one.future.done()
    (due,) = stream.watched
    assert 0.7 <= due - began < LONG_S
    assert stream.take() == []
    stream._pass_time(due)
    assert stream.take() == [one]


@pytest.mark.parametrize("is_group", [True, False])
def test_a_member_of_a_group_that_refuses_as_a_replica_is_left(is_group: bool) -> None:
    stream = Kept(is_group=is_group)
    one = batch()
    given(stream, one)
    stream.take()
    stream._settle([Result(correlation_id=one.correlation_id, error=refusal("NOT_LEADER"))])
    assert (stream.left, one.future.done()) == (int(is_group), False)


@pytest.mark.parametrize(("is_group", "repeat"), [(True, Repeat.HERE), (True, Repeat.NEVER), (False, Repeat.HERE)])
def test_a_group_is_asked_again_until_its_replicas_have_the_batch(is_group: bool, repeat: Repeat) -> None:
    """A group may elect a writer without it, so that only the repeat stores it."""
    stream = Kept(is_group=is_group)
    one = batch(repeat=repeat)
    given(stream, one)
    stream.take()
    answer = AppendBatchResponse(message_count=1, store_host=bytes(8), status=PUT_STATUS_FLUSH_SLAVE_TIMEOUT)
    stream._settle([Result(correlation_id=one.correlation_id, appended=answer)])
    if not is_group or repeat is Repeat.NEVER:
        assert one.future.result(0).status is SendStatus.FLUSH_SLAVE_TIMEOUT
        return
    assert not one.future.done()
    assert not one.may_move
    stream._pass_time(stream.watched[-1])
    assert stream.take() == [one]


@pytest.mark.parametrize(
    ("repeat", "left"), [(Repeat.HERE, [True, True]), (Repeat.ELSEWHERE, [True, False]), (Repeat.NEVER, [False, True])]
)
def test_a_writer_that_does_not_answer_returns_the_batches_that_may_move(repeat: Repeat, left: list[bool]) -> None:
    """After the end of a connection a sent batch may be stored; an unsent one may go to another writer."""
    stream = Kept()
    sent, unsent = batch(repeat=repeat), batch(repeat=repeat)
    given(stream, sent)
    stream.take()
    given(stream, unsent)
    stream._broke(WriterUnreachableError("it broke"), resume=True)
    stream._give_back(WriterUnreachableError("refused"))
    assert [not one.future.done() for one in (sent, unsent)] == left
    assert stream.is_down
    assert stream.take() == [one for one, is_left in zip((sent, unsent), left, strict=True) if is_left]
    for one in (sent, unsent):
        if one.future.done():
            assert isinstance(one.future.exception(0), WriterUnreachableError)


def test_no_batch_continues_after_a_final_end() -> None:
    stream = Kept()
    sent, unsent = batch(), batch()
    given(stream, sent)
    stream.take()
    given(stream, unsent)
    error = QueueIllegalError("it is over")
    stream._broke(error, resume=False)
    assert [one.future.exception(0) for one in (sent, unsent)] == [error, error]


def test_expired_batches_fail_and_are_returned() -> None:
    stream = Kept()
    sent, unsent, later = batch(seconds=1), batch(seconds=1), batch()
    given(stream, sent)
    stream.take()
    given(stream, unsent, later)
    assert stream._pass_time(time.monotonic() + 2) == [sent, unsent]
    assert isinstance(sent.future.exception(0), DeadlineExceededError)
    assert isinstance(unsent.future.exception(0), WriterUnreachableError)
    assert not later.future.done()


@pytest.mark.parametrize("is_final", [False, True])
def test_the_cause_of_silence_is_looked_for_once_in_a_while(is_final: bool) -> None:
    """A final cause fails the batches that were not sent at once; another one is the error of their expiry."""
    calls: list[int] = []
    cause = WriterUnreachableError("another service is there")

    def explain() -> tuple[StoreError, bool]:
        calls.append(1)
        return cause, is_final

    stream = Kept(explain=explain)
    one = batch(seconds=1)
    given(stream, one)
    stream._look_for_a_cause()
    stream._look_for_a_cause()
    assert len(calls) == 1
    assert one.future.done() == is_final
    stream._pass_time(time.monotonic() + 2)
    assert one.future.exception(0) is cause


def test_a_batch_waits_for_room_until_its_deadline() -> None:
    stream = Kept(limits=PendingLimits(1 << 20, 1))
    first, second = batch(), batch()
    given(stream, first)
    assert not stream.has_room(1)
    with pytest.raises(InFlightLimitError):
        stream.submit(batch(seconds=0.01))
    waiting = threading.Thread(target=stream.submit, args=(second,))
    waiting.start()
    stream._settle([Result(correlation_id=first.correlation_id, error=refusal("QUEUE_ID_ILLEGAL"))])
    waiting.join(LONG_S)
    assert stream.added == [first, second]


def test_a_stream_with_batches_in_flight_is_not_retired() -> None:
    """A retired one accepts no batch, so that its sender takes the next stream."""
    stream = Kept()
    one = batch()
    given(stream, one)
    assert not stream.retire()
    given(stream, batch())
    stream._settle([Result(correlation_id=n.correlation_id, error=refusal("BATCH_EMPTY")) for n in list(stream.added)])
    assert stream.retire()
    with pytest.raises(StoreClosedError):
        stream.submit(batch())


def test_close_fails_what_is_unanswered_after_the_timeout() -> None:
    stream = Kept()
    sent, unsent = batch(), batch()
    given(stream, sent)
    stream.take()
    given(stream, unsent)
    assert len(stream.unanswered()) == 2
    stream.close()
    assert isinstance(sent.future.exception(0), DeadlineExceededError)
    assert isinstance(unsent.future.exception(0), WriterUnreachableError)
    assert not stream.unanswered()


def test_a_callback_may_submit_the_next_batch() -> None:
    """`flush` also waits for it."""
    stream = Kept()
    first, second = batch(), batch()
    first.future.add_done_callback(lambda _: stream.submit(second))
    given(stream, first)
    stream._settle([Result(correlation_id=first.correlation_id, error=refusal("BATCH_EMPTY"))])
    assert stream.added == [first, second]
    assert not stream.flush(0.01)


def test_an_answer_that_is_not_understood_fails_its_batch_only() -> None:
    stream = Kept()
    one, other = batch(), batch()
    given(stream, one, other)
    unknown = AppendBatchResponse(status=99, store_host=b"")  # type: ignore[arg-type]
    stream._settle([Result(correlation_id=one.correlation_id, appended=unknown)])
    with pytest.raises(StoreError, match="not understood"):
        one.future.result(0)
    assert not other.future.done()
