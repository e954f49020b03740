"""Pulls in remoting frames, against a peer over real TCP that serves the queues of a test."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.builders import properties, record_bytes
from tests.unit.client.fake_service import GENEROUS_S
from tests.unit.client.received_messages import ORDERS
from tests.unit.client.wire.remoting_peer import EndError, RemotingPeer, peer
from tests.waiting import until
from tidemark.client.consumer import remoting_pulls
from tidemark.client.consumer.remoting_pulls import PullLimits, RemotingPulls
from tidemark.client.received_message import PulledPage, TopicQueue
from tidemark.client.wire.frame_socket import FrameSocket
from tidemark.errors import (
    OffsetOutOfRangeError,
    QueryUnreachableError,
    StoreError,
    TokenFileError,
    TopicNotFoundError,
)
from tidemark.remoting.codes import ResponseCode
from tidemark.remoting.frame import Frame, answer_to
from tidemark.remoting.framing import encode
from tidemark.remoting.pulling import PULL_ANSWER, PULL_REQUEST, PullMessageAnswer, PullMessageRequest
from tidemark.remoting.refusal import FACTS, REASON, SKIPPED, TOKEN
from tidemark.tls.credentials import Credentials

OTHER = TopicQueue("orders", 1)
RETRIES = TopicQueue("%RETRY%g", 0)
NOBODY = Credentials()


class Queues:
    """The service. Messages by queue; first: the minimal offset; silent: pulls of these queues are not answered."""

    def __init__(self) -> None:
        self.messages: dict[TopicQueue, list[bytes]] = {ORDERS: [b"a", b"b"], OTHER: [b"c"], RETRIES: []}
        self.first = 0
        self.silent: set[TopicQueue] = set()
        self.asked: list[PullMessageRequest] = []
        self.tokens: list[str | None] = []

    def answer(self, frame: Frame) -> Frame | bytes | None:
        asked = PULL_REQUEST.read(frame.fields)
        queue = TopicQueue(asked.topic, asked.queue_id)
        self.asked.append(asked)
        self.tokens.append(frame.fields.get(TOKEN))
        if queue in self.silent:
            return None
        if queue not in self.messages:
            return refusal(frame, ResponseCode.TOPIC_NOT_EXIST, "TOPIC_NOT_FOUND", topic=queue.topic)
        bodies, offset = self.messages[queue], asked.queue_offset - self.first
        end = self.first + len(bodies)
        if not 0 <= offset <= len(bodies):
            moved = PULL_ANSWER.write(PullMessageAnswer(self.first, self.first, end))
            return refusal(frame, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OUT_OF_RANGE", moved, max_offset=end)
        if offset == len(bodies):
            return None
        records = b"".join(
            record_bytes(body=body, queue_offset=at, properties=properties({"TAGS": "red"}))
            for at, body in enumerate(bodies[offset:], asked.queue_offset)
        )
        fields = PULL_ANSWER.write(PullMessageAnswer(end, self.first, end))
        return answer_to(frame, ResponseCode.SUCCESS, "FOUND", fields, records)


def refusal(
    frame: Frame, code: ResponseCode, reason: str, fields: dict[str, str] | None = None, **facts: object
) -> Frame:
    own = {REASON: reason, FACTS: orjson.dumps(facts).decode()}
    return answer_to(frame, code, f"refused: {reason}", {**(fields or {}), **own})


@pytest.fixture
def queues() -> Queues:
    return Queues()


@pytest.fixture
def served(queues: Queues) -> Iterator[RemotingPeer]:
    with peer(queues.answer) as made:
        yield made


@contextlib.contextmanager
def pulls_from(address: str, *, tags: list[str] | None = None, credentials: Credentials = NOBODY) -> Iterator[Any]:
    connection = FrameSocket.connect(address, credentials, is_tls=False, timeout_s=GENEROUS_S)
    made = RemotingPulls(
        address,
        is_tls=False,
        credentials=credentials,
        limits=PullLimits(100, 1 << 20),
        tags=tags or [],
        tagged_topics=frozenset({ORDERS.topic}),
        connection=connection,
    )
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def pulls(served: RemotingPeer) -> Iterator[RemotingPulls]:
    with pulls_from(served.address) as made:
        yield made


def collect(pulls: RemotingPulls, count: int) -> dict[TopicQueue, PulledPage]:
    """Return the next *count* pages by queue."""
    found: dict[TopicQueue, PulledPage] = {}
    deadline = time.monotonic() + GENEROUS_S
    while len(found) < count:
        assert time.monotonic() < deadline, found
        for fetched in pulls.fetched(1.0):
            assert fetched.queue not in found
            found[fetched.queue] = fetched.page()
    return found


def bodies(page: PulledPage) -> list[bytes]:
    return [message.body for message in page.messages]


def test_one_requested_queue_gets_one_answer_without_another_thread(queues: Queues, pulls: RemotingPulls) -> None:
    pulls.want(ORDERS, 1)
    page = collect(pulls, 1)[ORDERS]
    assert (page.status, page.requested_offset, page.next_offset) == ("FOUND", 1, 2)
    assert (page.min_offset, page.max_offset, page.skipped) == (0, 2, [])
    assert bodies(page) == [b"b"]
    assert list(pulls.fetched(0.0)) == []
    assert len(queues.asked) == 1
    assert [thread.name for thread in threading.enumerate() if "tidemark" in thread.name] == []
    (asked,) = queues.asked
    assert (asked.max_msg_nums, asked.max_msg_bytes, asked.suspend_timeout_ms) == (100, 1 << 20, 15_000)
    assert (asked.may_suspend, asked.subscription) == (True, "*")


def test_repeated_requests_for_the_same_offset_send_one_pull(queues: Queues, pulls: RemotingPulls) -> None:
    for _ in range(3):
        pulls.want(ORDERS, 2)
        assert list(pulls.fetched(0.0)) == []
    until(lambda: queues.asked)
    assert len(queues.asked) == 1


def test_a_request_for_another_offset_replaces_the_pull_in_flight(queues: Queues, pulls: RemotingPulls) -> None:
    pulls.want(ORDERS, 2)
    pulls.want(ORDERS, 1)
    assert bodies(collect(pulls, 1)[ORDERS]) == [b"b"]


def test_requests_of_a_queue_differ_in_their_offset_only(queues: Queues, pulls: RemotingPulls) -> None:
    for offset in (2, 0, 1):
        pulls.want(ORDERS, offset)
        pulls.want(OTHER, 1)
    until(lambda: len(queues.asked) == 4)
    asked = [one for one in queues.asked if one.queue_id == ORDERS.queue_id]
    assert [one.queue_offset for one in asked] == [2, 0, 1]
    assert len({one._replace(queue_offset=0) for one in asked}) == 1
    pulls.keep_only(frozenset({OTHER}))
    assert set(pulls._fields) == {OTHER}, "nothing is kept of a queue that another consumer has now"


@pytest.mark.parametrize("first", [0, 40])
def test_earliest_is_the_first_message(queues: Queues, pulls: RemotingPulls, first: int) -> None:
    queues.first = first
    pulls.want(ORDERS, "earliest")
    pulls.want(ORDERS, "earliest")
    page = collect(pulls, 1)[ORDERS]
    assert (page.requested_offset, bodies(page)) == (first, [b"a", b"b"])
    assert len(queues.asked) == (2 if first else 1)


def test_a_dropped_queue_is_not_answered(queues: Queues, pulls: RemotingPulls) -> None:
    pulls.want(ORDERS, 0)
    pulls.want(OTHER, 0)
    pulls.keep_only(frozenset({OTHER}))
    assert set(collect(pulls, 1)) == {OTHER}


def test_the_tags_apply_to_their_topics_only(queues: Queues, served: RemotingPeer) -> None:
    queues.messages[RETRIES] = [b"again"]
    with pulls_from(served.address, tags=["blue || green", "yellow"]) as pulls:
        pulls.want(ORDERS, 0)
        pulls.want(RETRIES, 0)
        found = collect(pulls, 2)
    assert {asked.topic: asked.subscription for asked in queues.asked} == {
        "orders": "blue||green||yellow",
        "%RETRY%g": "*",
    }
    assert (bodies(found[ORDERS]), bodies(found[RETRIES])) == ([], [b"again"]), "tags are compared here again"


def test_an_expression_of_all_messages_is_no_filter(queues: Queues, served: RemotingPeer) -> None:
    with pulls_from(served.address, tags=["blue", "*"]) as pulls:
        pulls.want(ORDERS, 0)
        assert bodies(collect(pulls, 1)[ORDERS]) == [b"a", b"b"]


def test_a_refusal_is_the_error_of_its_page_only(queues: Queues, pulls: RemotingPulls) -> None:
    pulls.want(TopicQueue("gone", 0), 0)
    pulls.want(ORDERS, 99)
    pulls.want(OTHER, 0)
    errors: dict[TopicQueue, StoreError] = {}
    deadline = time.monotonic() + GENEROUS_S
    while len(errors) < 2:
        assert time.monotonic() < deadline
        for fetched in pulls.fetched(1.0):
            try:
                fetched.page()
            except StoreError as error:
                errors[fetched.queue] = error
            with pytest.raises(TypeError):
                fetched.table()
    assert isinstance(errors[TopicQueue("gone", 0)], TopicNotFoundError)
    assert isinstance(errors[ORDERS], OffsetOutOfRangeError)
    assert errors[ORDERS].facts == {"max_offset": 2}


def test_a_caller_that_raises_gets_the_other_answers_later(queues: Queues, pulls: RemotingPulls) -> None:
    """Several answers may have arrived together."""
    wanted = [ORDERS, OTHER]
    for queue in wanted:
        pulls.want(queue, 0)
    until(lambda: len(queues.asked) == 2)
    time.sleep(0.1)
    with contextlib.suppress(KeyError):
        for fetched in pulls.fetched(1.0):
            wanted.remove(fetched.queue)
            raise KeyError("the program")
    assert list(collect(pulls, 1)) == wanted


def test_skipped_records_are_those_of_the_service_and_damaged_ones(queues: Queues) -> None:
    def answer(frame: Frame) -> Frame:
        told = [{"physical_offset": 1, "queue_offset": 0, "reason": "REMOVED", "message_count": 1}]
        fields = {**PULL_ANSWER.write(PullMessageAnswer(3, 0, 3)), SKIPPED: orjson.dumps(told).decode()}
        records = record_bytes(queue_offset=1, body_crc=7) + record_bytes(queue_offset=2, body=b"good")
        return answer_to(frame, ResponseCode.SUCCESS, "FOUND", fields, records)

    with peer(answer) as served, pulls_from(served.address) as pulls:
        pulls.want(ORDERS, 0)
        page = collect(pulls, 1)[ORDERS]
    assert [(one["queue_offset"], one["reason"]) for one in page.skipped] == [(0, "REMOVED"), (1, "BODY_CRC")]
    assert (bodies(page), page.next_offset) == ([b"good"], 3)


@pytest.mark.parametrize("code", [ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY])
def test_an_empty_page_moves_on(code: ResponseCode) -> None:
    def answer(frame: Frame) -> Frame:
        return answer_to(frame, code, "NO_MATCHED_MESSAGE", PULL_ANSWER.write(PullMessageAnswer(9, 0, 9)))

    with peer(answer) as served, pulls_from(served.address) as pulls:
        pulls.want(ORDERS, 0)
        page = collect(pulls, 1)[ORDERS]
    assert (page.status, page.next_offset, page.messages) == ("NO_MATCHED_MESSAGE", 9, [])


@pytest.mark.parametrize("how", ["end", "GO_AWAY", "no frame"])
def test_pulls_of_an_ended_connection_are_sent_again_on_the_next(queues: Queues, how: str) -> None:
    def answer(frame: Frame) -> Frame | bytes | None:
        if reached.accepted > 1:
            return queues.answer(frame)
        if how == "GO_AWAY":
            return answer_to(frame, ResponseCode.GO_AWAY, "the service is stopping")
        if how == "no frame":
            return b"HTTP/1.1 400 Bad Request\r\n\r\n"
        raise EndError

    with peer(answer) as reached, pulls_from(reached.address) as pulls:
        pulls.want(ORDERS, "earliest")
        pulls.want(OTHER, 0)
        found = collect(pulls, 2)
        assert {queue: bodies(page) for queue, page in found.items()} == {ORDERS: [b"a", b"b"], OTHER: [b"c"]}
        assert reached.accepted == 2
        assert pulls.unreachable is None


def test_an_unreachable_service_is_reported_since_its_first_failure(served: RemotingPeer) -> None:
    with pulls_from(served.address) as pulls:
        pulls.want(ORDERS, 2)
        served.stop()
        until(lambda: list(pulls.fetched(0.01)) == [] and pulls.unreachable)
        since, error = pulls.unreachable
        assert isinstance(error, QueryUnreachableError)
        until(lambda: list(pulls.fetched(0.01)) == [] and pulls.unreachable[1] is not error)
        assert pulls.unreachable[0] == since


def test_nothing_is_requested_during_the_pause_after_a_failure(
    queues: Queues, pulls: RemotingPulls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remoting_pulls, "_FIRST_DELAY_S", 0.3)
    pulls.failed(QueryUnreachableError("too busy"))
    pulls.want(ORDERS, 0)
    assert not pulls._in_flight
    assert bodies(collect(pulls, 1)[ORDERS]) == [b"a", b"b"]


def test_after_an_outage_the_first_answer_is_awaited(
    queues: Queues, served: RemotingPeer, pulls: RemotingPulls
) -> None:
    """A wait that ends at once would take a whole processor until the service has a message."""
    queues.silent = {ORDERS}
    pulls.failed(QueryUnreachableError("not reached"))
    pulls.want(ORDERS, 0)
    until(lambda: [*pulls.fetched(0.01), *queues.asked])
    began = time.monotonic()
    assert list(pulls.fetched(0.2)) == []
    assert time.monotonic() - began > 0.19


def test_a_silent_connection_is_replaced(queues: Queues, served: RemotingPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service answers each pull in time, also one without messages."""
    monkeypatch.setattr(remoting_pulls, "_LONGEST_SILENCE_S", 0.05)
    with pulls_from(served.address) as pulls:
        queues.silent = {ORDERS}
        pulls.want(ORDERS, 0)
        until(lambda: list(pulls.fetched(0.01)) == [] and served.accepted == 2)
        queues.silent = set()
        assert bodies(collect(pulls, 1)[ORDERS]) == [b"a", b"b"]


def test_an_interrupted_wait_loses_no_answer(queues: Queues, served: RemotingPeer, pulls: RemotingPulls) -> None:
    """KeyboardInterrupt comes after bytes were received."""
    connection = pulls._socket
    assert connection is not None

    def lose(timeout_s: float) -> list[Frame]:
        FrameSocket.receive(connection, timeout_s)
        raise KeyboardInterrupt

    pulls.want(ORDERS, 0)
    pulls.want(OTHER, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "receive", lose)
        with pytest.raises(KeyboardInterrupt):
            list(pulls.fetched(GENEROUS_S))
    assert {queue: bodies(page) for queue, page in collect(pulls, 2).items()} == {ORDERS: [b"a", b"b"], OTHER: [b"c"]}


def test_wake_ends_a_wait_of_another_thread(queues: Queues, pulls: RemotingPulls) -> None:
    pulls.want(ORDERS, 2)
    waiting = threading.Thread(target=lambda: list(pulls.fetched(600.0)), daemon=True)
    waiting.start()
    until(lambda: queues.asked)
    pulls.wake()
    waiting.join(GENEROUS_S)
    assert not waiting.is_alive()


def test_each_pull_has_the_present_token(queues: Queues, served: RemotingPeer, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    with pulls_from(served.address, credentials=Credentials(token_file=path)) as pulls:
        pulls.want(ORDERS, 0)
        collect(pulls, 1)
        path.unlink()
        with pytest.raises(TokenFileError):
            pulls.want(ORDERS, 0)
        path.write_text("second")
        pulls.want(ORDERS, 0)
        collect(pulls, 1)
    assert queues.tokens == ["one", "second"]


def test_a_notice_of_the_service_is_ignored(queues: Queues) -> None:
    def answer(frame: Frame) -> bytes:
        answered = queues.answer(frame)
        assert isinstance(answered, Frame)
        return encode(Frame(40, 2, frame.opaque, answered.language, 479)) + encode(answered)

    with peer(answer) as served, pulls_from(served.address) as pulls:
        pulls.want(ORDERS, 0)
        assert bodies(collect(pulls, 1)[ORDERS]) == [b"a", b"b"]
