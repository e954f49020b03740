"""PullRequests: pulls of RocketMQ's consumers (11, 361), which may wait for messages.

RocketMQ: PullMessageProcessor, PullRequestHoldService. A page is the records as stored; consumers compare tags again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import orjson

from tidemark.access.right import READING, Action, on_group, on_topic
from tidemark.errors import (
    FieldIllegalError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    QueueIllegalError,
    TopicForbiddenError,
)
from tidemark.read.pull import PullStatus
from tidemark.read.tag_filter import TagFilter
from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting.frame import Buffer
from tidemark.remoting.heartbeats import SubscriptionData
from tidemark.remoting.pulling import (
    PULL_ANSWER,
    PULL_REQUEST,
    TAG,
    PullMessageAnswer,
    PullMessageRequest,
    parse_tags,
)
from tidemark.remoting.refusal import SKIPPED
from tidemark.remoting.routes import PERM_READ
from tidemark.remoting_server.client_groups import ClientGroups
from tidemark.remoting_server.connection import Connection
from tidemark.remoting_server.exchange import Exchange, Handler, refusal_fields
from tidemark.remoting_server.refusals import NO_SQL
from tidemark.store.originals.topics import TopicConfig

from ..pull.pull_response import PullAnswerer, skipped_json
from ..pull.pulled import AnswerLimits, Pulled
from ..pull.queue_pull import QueuePull
from ..pull.single_pull import Puller
from ..state.service_state import ServiceState
from ..state.watermark_watcher import Queues, Ready
from .offset_commits import OffsetCommits, offset_to_commit
from .page_reads import MOST_AT_ONCE, PageReads
from .repeated_pulls import ParsedPull, RepeatedPulls

if TYPE_CHECKING:
    from ..pull.pull_spans import PullSpans

_MOST_SKIPPED = 20
_DEFAULT_BYTES = 256 << 10  # Go's client names no limit
_FOUND, _NOT_FOUND = ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND
_RETRY_NOW, _MOVED = ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_OFFSET_MOVED


class _Page(NamedTuple):
    """The answer to a pull."""

    code: ResponseCode
    answer: PullMessageAnswer
    status: PullStatus
    parts: list[Buffer]
    own_fields: dict[str, str]  # for Tidemark's own clients


class _Refusal(NamedTuple):
    """The answer to a pull whose subscription cannot be used."""

    code: ResponseCode
    remark: str


class _ConnectionState:
    """The part of a connection's state that its pulls share. turns: of reads on threads."""

    def __init__(self) -> None:
        self.repeated = RepeatedPulls()
        self.turns = asyncio.Semaphore(MOST_AT_ONCE)


class PullRequests:
    """Answers pulls. spans: None if traces are off."""

    def __init__(
        self, state: ServiceState, groups: ClientGroups, commits: OffsetCommits, spans: PullSpans | None
    ) -> None:
        self._state = state
        self._groups = groups
        self._commits = commits
        self._spans = spans
        self._connections: WeakKeyDictionary[Connection, _ConnectionState] = WeakKeyDictionary()

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return dict.fromkeys((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE), self._pull)

    def _pull(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        connection = self._connections.get(exchange.connection)
        if connection is None:
            connection = self._connections[exchange.connection] = _ConnectionState()
        repeated = connection.repeated.find(exchange.frame.fields)
        if repeated is None:
            parsed = self._parsed(exchange)
            if isinstance(parsed, _Refusal):
                exchange.answer(parsed.code, remark=parsed.remark)
                return None
            offset = parsed.asked.queue_offset
        else:
            parsed, offset = repeated
            exchange.caller.require(parsed.right)
        asked = parsed.asked
        config = self._readable(asked)
        if repeated is None and asked.has_subscription:  # another one may change with the next heartbeat
            connection.repeated.keep(exchange.frame.fields, parsed)
        if asked.commits_offset and asked.commit_offset >= 0:
            right = on_group(asked.consumer_group, Action.SUB, Action.UPDATE)
            if exchange.caller.may(right):
                self._commits.put(
                    offset_to_commit(asked.consumer_group, asked.topic, asked.queue_id, asked.commit_offset)
                )
        pull = QueuePull(self._state, asked.topic, asked.queue_id, str(offset), parsed.limits, config)
        return self._answer(exchange, pull, offset, connection.turns)

    def _parsed(self, exchange: Exchange) -> ParsedPull | _Refusal:
        """Parse the request and check the right to read the topic."""
        asked = PULL_REQUEST.read(exchange.frame.fields)
        right = on_topic(asked.topic, *READING)
        exchange.caller.require(right)
        found = self._expression(asked)
        if isinstance(found, _Refusal):
            return found
        try:
            tags = parse_tags(found)
        except FieldIllegalError as error:
            return _Refusal(ResponseCode.SUBSCRIPTION_PARSE_FAILED, error.message)
        return ParsedPull(asked, right, self._limits(asked, None if tags is None else TagFilter(tags)))

    def _expression(self, asked: PullMessageRequest) -> str | _Refusal:
        """Return the TAG expression: the request's own, or else the one of the group's heartbeat."""
        if asked.has_subscription:
            return _tag_expression(asked.expression_type, asked.subscription or "")
        if not self._groups.exists(asked.consumer_group):
            return _Refusal(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group {asked.consumer_group} has no members"
            )
        known: SubscriptionData | None = self._groups.subscription(asked.consumer_group, asked.topic)
        if known is None:
            return _Refusal(
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
                f"group {asked.consumer_group} does not subscribe topic {asked.topic}",
            )
        if known.version < asked.sub_version:
            return _Refusal(
                ResponseCode.SUBSCRIPTION_NOT_LATEST,
                f"the subscription of topic {asked.topic} is newer than the last heartbeat of the group",
            )
        return _tag_expression(known.expression_type, known.expression)

    def _readable(self, asked: PullMessageRequest) -> TopicConfig:
        """Return the topic. Raises TopicNotFoundError, TopicForbiddenError or QueueIllegalError."""
        config = self._state.store.topic(asked.topic)
        if not config.permission & PERM_READ:
            raise TopicForbiddenError(
                f"topic {asked.topic} is not readable: it has permission {config.permission}",
                topic=asked.topic,
                permission=config.permission,
            )
        if asked.queue_id < 0:
            raise QueueIllegalError(
                f"topic {asked.topic} has no queue {asked.queue_id}", topic=asked.topic, queue_id=asked.queue_id
            )
        return config

    async def _answer(self, exchange: Exchange, pull: QueuePull, offset: int, turns: asyncio.Semaphore) -> None:
        state, connection = self._state, exchange.connection
        answerer = PullAnswerer(state, pull.topic, pull.queue_id)

        def make_page(pulled: Pulled) -> _Page:
            code = _code_of(pulled, offset)
            parts: list[Buffer] = list(answerer.records(pulled)) if code is _FOUND else []
            bounds = pulled.result.bounds
            answer = PullMessageAnswer(pulled.result.next_offset, max(bounds.min_offset, 0), max(bounds.max_offset, 0))
            skipped = pulled.result.skipped[:_MOST_SKIPPED]
            own = {SKIPPED: orjson.dumps(skipped_json(skipped)).decode()} if skipped else {}
            return _Page(code, answer, pulled.result.status, parts, own)

        make = make_page if self._spans is None else self._spans.around(make_page, pull.topic, pull.queue_id)

        def wait(ready: Ready, deadline: float, looks: int, queues: Queues) -> Awaitable[bool]:
            left_s = deadline - time.monotonic()
            return state.watcher.wait(ready, left_s, client=connection.address, looks=looks, queues=queues)

        reads = PageReads(state.reads, connection, turns)
        try:
            page = await Puller(state, pull, wait, reads=reads, is_worth_waiting=_is_worth_waiting).run(make)
        except (OffsetTooSmallError, OffsetOutOfRangeError) as error:
            page = _moved(error)
        fields = PULL_ANSWER.write(page.answer) | page.own_fields
        exchange.answer_parts(page.code, fields, page.parts, remark=page.status.value)

    def _limits(self, asked: PullMessageRequest, tags: TagFilter | None) -> AnswerLimits:
        settings = self._state.settings
        # A client may not read frames over 16 MiB; a record larger than the limit is returned by itself.
        most_bytes = min(settings.query_max_bytes, settings.remoting_max_frame_bytes // 2)
        wait_ms = max(asked.suspend_timeout_ms, 0) if asked.may_suspend else 0
        return AnswerLimits(
            min(max(asked.max_msg_nums, 1), settings.query_max_messages),
            min(max(asked.max_msg_bytes or _DEFAULT_BYTES, 1), most_bytes),
            min(wait_ms, settings.query_max_wait_ms),
            tags,
            whole_records=True,
            tags_by_hash=True,
        )


def _tag_expression(kind: str, expression: str) -> str | _Refusal:
    return expression if kind == TAG else _Refusal(ResponseCode.SYSTEM_ERROR, NO_SQL)


def _is_worth_waiting(pulled: Pulled) -> bool:
    """Return True if there is no message now; an offset in an empty queue is not worth waiting, but moved."""
    return pulled.is_worth_waiting and not _is_after_empty_queue(pulled)


def _is_after_empty_queue(pulled: Pulled) -> bool:
    result = pulled.result
    return result.status is PullStatus.NO_MESSAGE_IN_QUEUE and result.next_offset != pulled.requested_offset


def _code_of(pulled: Pulled, offset: int) -> ResponseCode:
    if pulled.result.message_count:  # parts may have only damaged records
        return _FOUND
    if _is_after_empty_queue(pulled):
        return _MOVED
    return _RETRY_NOW if pulled.result.next_offset > offset else _NOT_FOUND


def _moved(error: OffsetTooSmallError | OffsetOutOfRangeError) -> _Page:
    facts: dict[str, Any] = error.facts
    answer = PullMessageAnswer(facts["next_offset"], facts["min_offset"], facts["max_offset"])
    return _Page(_MOVED, answer, PullStatus(facts["pull_status"]), [], refusal_fields(error))
