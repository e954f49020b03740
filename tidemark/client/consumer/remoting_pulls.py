"""RemotingPulls: long pulls in remoting frames on one connection. Runs in the caller's thread.

The service holds a pull until there are messages. A page is the records as stored, which are decoded as the program
looks at them.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from tidemark.client.consumer.stored_messages import decode_records
from tidemark.client.consumer.wakeup import Bell
from tidemark.client.received_message import PulledPage, TopicQueue
from tidemark.client.wire.frame_socket import FrameSocket
from tidemark.errors import FrameIllegalError, QueryUnreachableError, StoreError, UnavailableError
from tidemark.format.tags import parse_tag_expression
from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting.frame import Frame, request
from tidemark.remoting.framing import encode
from tidemark.remoting.pulling import PULL_OFFSETS, PULL_REQUEST, PullFlag, PullMessageRequest
from tidemark.remoting.refusal import FACTS, REASON, SKIPPED, TOKEN
from tidemark.status import error_of
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    from tidemark.client.rest.arrow_page import TablePage

CONNECT_TIMEOUT_S = 1.0
_LONG_POLL_MS = 15_000
_SEND_TIMEOUT_S = 10.0
_LONGEST_SILENCE_S = 30.0  # twice the time for which the service holds a pull
_FIRST_DELAY_S, _GREATEST_DELAY_S = 0.05, 2.0
_MAX_OPAQUE = 0x7FFFFFFF
_BEARER = "Bearer "
_NO_GROUP = "TIDEMARK_CLIENT"  # pulls carry their own subscription, so no group is looked up
_ALL = "*"
_OFFSET = PULL_REQUEST.name_of("queue_offset")
_FLAGS = int(PullFlag.SUSPEND | PullFlag.SUBSCRIPTION)
_PAGES = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY)


class PullLimits(NamedTuple):
    """Limits of a page."""

    max_messages: int
    max_bytes: int


@dataclass(slots=True)
class _Pull:
    """A request in flight."""

    queue: TopicQueue
    offset: int
    is_earliest: bool  # the queue's first message is wanted; the offset is a guess
    asked_at: float = field(default_factory=time.monotonic, compare=False)


class RemotingFetched(NamedTuple):
    """The answer to one pull. tags: None for messages with any tag."""

    queue: TopicQueue
    offset: int
    frame: Frame
    tags: frozenset[str] | None

    def page(self) -> PulledPage:
        """Return the messages; raise the StoreError with which the pull was refused."""
        frame = self.frame
        if frame.code not in _PAGES and (frame.code != ResponseCode.PULL_OFFSET_MOVED or REASON in frame.fields):
            facts: dict[str, Any] = orjson.loads(frame.fields.get(FACTS, "{}"))
            raise error_of(frame.fields.get(REASON, ""), frame.remark, **facts)
        answer = PULL_OFFSETS.read(frame.fields)
        skipped = frame.fields.get(SKIPPED)
        records = decode_records(self.queue, bytes(frame.body), least_offset=self.offset, tags=self.tags)
        return PulledPage(
            self.queue,
            frame.remark,
            records.messages,
            self.offset,
            answer.next_begin_offset,
            answer.min_offset,
            answer.max_offset,
            [*orjson.loads(skipped), *records.skipped] if skipped else records.skipped,
        )

    def table(self) -> TablePage:
        """Raise TypeError."""
        raise TypeError("records have no table: request Arrow")


class RemotingPulls:
    """Pulls from the query service at *address*, host:port.

    tags            one tag or several; empty for all messages
    tagged_topics   topics to which *tags* apply
    connection      the first connection
    locate          of a group's services: returns the address of one that answers, at each further connection
    """

    def __init__(
        self,
        address: str,
        *,
        is_tls: bool,
        credentials: Credentials,
        limits: PullLimits,
        tags: list[str],
        tagged_topics: frozenset[str],
        connection: FrameSocket,
        locate: Callable[[], str] | None = None,
    ) -> None:
        self._address = address
        self._is_tls = is_tls
        self._credentials = credentials
        self._limits = limits
        self._tags = _tags_of(tags)
        self._tagged_topics = tagged_topics
        self._locate = locate
        self._socket: FrameSocket | None = connection
        self._opaque = itertools.count(1)
        self._wanted: dict[TopicQueue, int | str] = {}  # not requested yet
        self._in_flight: dict[int, _Pull] = {}  # by opaque number
        self._by_queue: dict[TopicQueue, int] = {}  # opaque number of the pull of each queue
        self._fields: dict[TopicQueue, dict[str, str]] = {}  # of the requests, with offset 0, without a token
        self._arrived: deque[Frame] = deque()  # answers that `fetched` has not handled yet
        self._heard_at = 0.0  # time.monotonic() of the last answer
        self._failures = 0
        self._not_before = 0.0
        self.is_patient = True  # the service has named its address
        self.unreachable: tuple[float, UnavailableError] | None = None
        self._bell = Bell()

    @property
    def descriptors(self) -> list[int]:
        """See `Pulls.descriptors`."""
        return [self._bell.descriptor, *([] if self._socket is None else [self._socket.fileno()])]

    def want(self, queue: TopicQueue, offset: int | str) -> None:
        """Request the messages of *queue* from *offset*, a number or earliest, on."""
        number = self._by_queue.get(queue)
        if number is not None:
            pull = self._in_flight[number]
            if pull.is_earliest if isinstance(offset, str) else pull.offset == offset and not pull.is_earliest:
                return
            self.drop(queue)
        self._wanted[queue] = offset
        self._ask()

    def drop(self, queue: TopicQueue) -> None:
        """Stop requesting messages of *queue*; an answer that still comes is ignored."""
        self._wanted.pop(queue, None)
        number = self._by_queue.pop(queue, None)
        if number is not None:
            self._in_flight.pop(number, None)

    def keep_only(self, queues: frozenset[TopicQueue]) -> None:
        """Drop all queues that are not in *queues*."""
        for queue in (self._by_queue.keys() | self._wanted.keys()) - queues:
            self.drop(queue)
        self._fields = {queue: fields for queue, fields in self._fields.items() if queue in queues}

    def fetched(self, timeout_s: float) -> Iterator[RemotingFetched]:
        """Yield the answers that have arrived; wait for the first one until *timeout_s* or `wake`."""
        self._ask()
        if not self._arrived:
            self._arrived.extend(self._receive(timeout_s))
        while self._arrived:  # a caller that raises gets the rest with its next call
            frame = self._arrived.popleft()
            pull = self._in_flight.get(frame.opaque) if frame.is_answer else None
            if pull is None:  # dropped meanwhile
                continue
            self.drop(pull.queue)
            self._failures, self.unreachable = 0, None
            if frame.code == ResponseCode.GO_AWAY:
                self._lost(ConnectionResetError(frame.remark))
                self._wanted[pull.queue] = "earliest" if pull.is_earliest else pull.offset
            elif pull.is_earliest and frame.code == ResponseCode.PULL_OFFSET_MOVED:
                self._send(
                    replace(pull, offset=PULL_OFFSETS.read(frame.fields).next_begin_offset, asked_at=time.monotonic())
                )
            else:
                yield RemotingFetched(pull.queue, pull.offset, frame, self._tags_for(pull.queue))

    def _tags_for(self, queue: TopicQueue) -> frozenset[str] | None:
        return self._tags if queue.topic in self._tagged_topics else None

    # ── the connection ──────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self) -> None:
        """Send pulls for all wanted queues, unless the service did not answer a moment ago."""
        if not self._wanted:
            return
        if self._not_before:
            if time.monotonic() < self._not_before:
                return
            self._not_before = 0.0
        if not self._connect():
            return
        wanted, self._wanted = self._wanted, {}
        for queue, offset in wanted.items():
            is_earliest = isinstance(offset, str)
            self._send(_Pull(queue, 0 if isinstance(offset, str) else offset, is_earliest))

    def _send(self, pull: _Pull) -> None:
        """Send *pull*; if the connection has ended, request its queue again later."""
        connection = self._socket
        if connection is None:
            self._wanted[pull.queue] = "earliest" if pull.is_earliest else pull.offset
            return
        fields = self._fields.get(pull.queue)
        if fields is None:
            fields = self._fields[pull.queue] = self._fields_of(pull.queue)
        fields = {**fields, _OFFSET: str(pull.offset)}
        if self._credentials.shows_token:
            fields[TOKEN] = (self._credentials.authorization() or "").removeprefix(_BEARER)
        number = next(self._opaque) & _MAX_OPAQUE
        self._in_flight[number] = pull
        self._by_queue[pull.queue] = number
        try:
            connection.send(encode(request(RequestCode.PULL_MESSAGE, fields, opaque=number)), _SEND_TIMEOUT_S)
        except OSError as error:
            self._lost(error)

    def _fields_of(self, queue: TopicQueue) -> dict[str, str]:
        """Return the fields of all requests for *queue*, with offset 0."""
        tags = self._tags_for(queue)
        return PULL_REQUEST.write(
            PullMessageRequest(
                _NO_GROUP,
                queue.topic,
                queue.queue_id,
                0,
                self._limits.max_messages,
                _FLAGS,
                0,
                _LONG_POLL_MS,
                _ALL if tags is None else "||".join(sorted(tags)),
                max_msg_bytes=self._limits.max_bytes,
            )
        )

    def _connect(self) -> bool:
        if self._socket is not None:
            return True
        try:
            if self._locate is not None:
                self._address = self._locate()
            self._socket = FrameSocket.connect(
                self._address, self._credentials, is_tls=self._is_tls, timeout_s=CONNECT_TIMEOUT_S
            )
        except (OSError, StoreError) as error:
            self.failed(QueryUnreachableError(f"the query service at {self._address} was not reached: {error}"))
            return False
        return True

    def _receive(self, timeout_s: float) -> list[Frame]:
        self._end_silence()
        if self._wanted:  # after the pause, the next call requests them
            timeout_s = min(timeout_s, self._not_before - time.monotonic())
        connection = self._socket
        ready = self._bell.wait([] if connection is None else [connection.fileno()], timeout_s)
        if connection is None or not ready.descriptors:
            return []
        try:
            frames = connection.receive(0)
            if frames:
                self._heard_at = time.monotonic()
            return frames
        except (OSError, FrameIllegalError) as error:
            self._lost(error)
            return []
        except BaseException as error:  # KeyboardInterrupt: perhaps received bytes are lost
            self._lost(error)
            raise

    def _end_silence(self) -> None:
        """Replace a connection on which an answer is overdue."""
        oldest = next(iter(self._in_flight.values()), None)
        if oldest is not None and time.monotonic() > max(oldest.asked_at, self._heard_at) + _LONGEST_SILENCE_S:
            self._lost(TimeoutError("an answer is overdue"))

    def _lost(self, error: BaseException) -> None:
        """Close the connection; its pulls are requested again on the next one."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()
        for pull in self._in_flight.values():
            self._wanted.setdefault(pull.queue, "earliest" if pull.is_earliest else pull.offset)
        self._in_flight.clear()
        self._by_queue.clear()
        self._arrived.clear()
        self.failed(QueryUnreachableError(f"the connection to the query service at {self._address} ended: {error}"))

    def wake(self) -> None:
        """End a wait of `fetched`. Called from another thread."""
        self._bell.ring()

    def failed(self, error: UnavailableError) -> None:
        """Note that the service does not answer or is unavailable, and pause."""
        now = time.monotonic()
        self._not_before = now + min(_FIRST_DELAY_S * 2**self._failures, _GREATEST_DELAY_S)
        self._failures += 1
        self.unreachable = (now if self.unreachable is None else self.unreachable[0]), error

    def close(self) -> None:
        """Close the connection."""
        self.keep_only(frozenset())
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._bell.close()


def _tags_of(expressions: list[str]) -> frozenset[str] | None:
    """Return the tags of *expressions* such as ``A || B``; None for all messages, as the REST API reads them."""
    tags: set[str] = set()
    for expression in expressions:
        parsed = parse_tag_expression(expression)
        if parsed is None:
            return None
        tags |= parsed
    return frozenset(tags) or None
