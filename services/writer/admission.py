"""Admission: a request is checked whole before anything is written. The order of checks is the spec's (3.2, 2.8, 3.5).

Owns no state but the turns of the round robin; runs on the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tidemark.errors import (
    ArgumentIllegalError,
    BatchDelayError,
    BatchEmptyError,
    BatchRetryTopicError,
    BatchTransactionError,
    InnerBatchIllegalError,
    MessageSizeExceededError,
    PropertiesIllegalError,
    PropertiesSizeExceededError,
    QueueIllegalError,
    TopicForbiddenError,
)
from tidemark.format.message_id import UniqueKeys
from tidemark.format.primitives import MAX_INNER_BATCH_COUNT, MAX_PROPERTIES_SIZE_BYTES, java_hash
from tidemark.format.properties import (
    DELAY,
    INNER_BASE,
    INNER_MULTI_DISPATCH,
    INNER_NUM,
    PROPERTY_CRC,
    TIMER_NAMES,
    UNIQ_KEY,
    encode_properties,
    split_keys,
)
from tidemark.format.record import BLANK_SIZE, INNER_BATCH_FLAGS, TRANSACTION_MASK, SysFlag
from tidemark.format.wire_batch import BatchFacts, scan
from tidemark.store.topics import PERMISSION_WRITE, TopicConfig
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

from .batch import Batch, QueueKey, Wrapper
from .encode import Encoder, u8
from .payload import require_writable
from .topic_table import Topic

_SINGLE_SLACK = 65_536  # a record may be that much larger than the greatest body (spec 2.8)
_MAX_REQUEST_ID_LENGTH = 255
_MAX_DIGITS = (1 << 63) - 1


class Limits(NamedTuple):
    """Sizes in bytes."""

    max_message_size: int
    segment_size: int


class Admission:
    """Turns requests into batches, or says why not."""

    def __init__(self, limits: Limits, store_host: bytes, *, unique_keys: UniqueKeys | None = None) -> None:
        self._limits = limits
        self._encoder = Encoder(store_host)  # for sizes only
        self._unique_keys = unique_keys or UniqueKeys()
        self._turns: dict[str, int] = {}

    def admit(
        self,
        request: AppendBatchRequest,
        topic: Topic,
        payload: bytes,
        *,
        born_host: bytes,
        answer: Callable[[Batch], None],
    ) -> Batch:
        """The batch of *request*, which passed `check_request`, and of its wire batch. A refusal changes nothing.

        raises a RejectedError leaf
        """
        config = topic.config
        wire = u8(payload)
        if wire.size > self._limits.max_message_size + _SINGLE_SLACK:
            raise self._too_large(wire.size)
        facts = scan(wire)
        self._check_facts(facts, wire.size, config)
        unique_key = facts.unique_key or request.request_id.encode()
        inner_properties = None
        if config.is_batch:
            unique_key, inner_properties = self._inner_properties(request, facts)
        batch = Batch(
            key=QueueKey(config.name, self._choose_queue(request, config, facts)),
            topic_field=topic.field,
            wire=wire,
            count=facts.count,
            parts_size=facts.parts_size,
            wrapper=_wrapper(request, born_host),
            unique_key=unique_key,
            first_extra=u8(b"" if config.is_batch else _first_extra(request, facts)),
            inner_properties=inner_properties,
            expected_next_offset=request.expected_next_offset if request.HasField("expected_next_offset") else None,
            answer=answer,
        )
        size = self._encoder.size(batch, _MAX_DIGITS)
        if size + BLANK_SIZE > self._limits.segment_size:
            raise MessageSizeExceededError(
                "the records do not fit into one file", size=size, limit=self._limits.segment_size - BLANK_SIZE
            )
        return batch

    def _too_large(self, size: int) -> MessageSizeExceededError:
        return MessageSizeExceededError("the batch is too large", size=size, limit=self._limits.max_message_size)

    def _check_facts(self, facts: BatchFacts, wire_size: int, config: TopicConfig) -> None:
        limit = self._limits.max_message_size
        if facts.count == 0:
            raise BatchEmptyError("a batch without messages")
        if facts.empty_body_at is not None:
            raise BatchEmptyError("a message without a body", at=facts.empty_body_at)
        single = facts.count == 1 and not config.is_batch  # like a single send: its body counts, not its wire form
        if (facts.parts_size - len(facts.first_properties) if single else wire_size) > limit:
            raise self._too_large(wire_size)
        if facts.delay_at is not None:
            raise BatchDelayError("a message of the batch asks for a delayed delivery", at=facts.delay_at)
        if facts.inner_at is not None:
            raise InnerBatchIllegalError("a message of the batch says that it is a batch", at=facts.inner_at)
        if facts.crc_at is not None:  # where it is wrong, the record would count as damaged
            raise PropertiesIllegalError(f"{PROPERTY_CRC} is the store's to write", at=facts.crc_at)
        if config.is_batch and facts.count > MAX_INNER_BATCH_COUNT:
            raise InnerBatchIllegalError(
                "too many messages for an inner batch", count=facts.count, limit=MAX_INNER_BATCH_COUNT
            )

    def _inner_properties(self, request: AppendBatchRequest, facts: BatchFacts) -> tuple[bytes, bytes]:
        """(the key repeats are recognised by, the record's properties but INNER_BASE) on a BatchCQ topic."""
        properties = dict(request.properties)
        claimed = properties.pop(INNER_NUM, str(facts.count))
        if claimed != str(facts.count):
            raise InnerBatchIllegalError("INNER_NUM is not the number of messages", claimed=claimed, count=facts.count)
        properties.pop(INNER_BASE, None)
        given = properties.pop(UNIQ_KEY, "") or request.request_id or facts.unique_key.decode("utf-8", "replace")
        own = {INNER_NUM: str(facts.count), UNIQ_KEY: given or self._unique_keys.make()}
        encoded = encode_properties(own | {name: properties[name] for name in sorted(properties)})
        if len(encoded) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                "the batch's properties are too long", size=len(encoded), limit=MAX_PROPERTIES_SIZE_BYTES
            )
        return given.encode(), encoded

    def _choose_queue(self, request: AppendBatchRequest, config: TopicConfig, facts: BatchFacts) -> int:
        if request.HasField("queue_id"):
            return request.queue_id
        keys = split_keys(facts.keys.decode("utf-8", "replace"))
        key = request.routing_key or (keys[0] if keys else "")
        if key:
            return abs(java_hash(key)) % config.write_queues
        turn = self._turns.get(config.name, 0)
        self._turns[config.name] = turn + 1
        return turn % config.write_queues


def check_request(request: AppendBatchRequest, config: TopicConfig) -> None:
    """What comes before the messages themselves: queue, retry topics, the wrapper. Raises a RejectedError leaf."""
    _check_queue(request, config)
    if config.name.startswith("%RETRY%"):
        raise BatchRetryTopicError("a batch to a retry topic", topic=config.name)
    _check_wrapper(request, config)


def _check_queue(request: AppendBatchRequest, config: TopicConfig) -> None:
    if not config.permission & PERMISSION_WRITE or config.write_queues < 1:
        raise TopicForbiddenError("the topic takes no messages", topic=config.name, permission=config.permission)
    if request.HasField("queue_id"):
        if not 0 <= request.queue_id < config.queues:
            raise QueueIllegalError("no such queue", queue_id=request.queue_id, queues=config.queues)
    elif request.HasField("expected_next_offset"):
        raise ArgumentIllegalError("expected_next_offset needs queue_id", argument="queue_id")
    if request.HasField("expected_next_offset") and request.expected_next_offset < 0:
        raise ArgumentIllegalError("expected_next_offset is negative", argument="expected_next_offset")


def _check_wrapper(request: AppendBatchRequest, config: TopicConfig) -> None:
    properties = request.properties
    if request.born_timestamp_ms < 0:
        raise ArgumentIllegalError("born_timestamp_ms is negative", argument="born_timestamp_ms")
    if request.reconsume_times < 0:
        raise ArgumentIllegalError("reconsume_times is negative", argument="reconsume_times")
    require_writable(properties)
    if PROPERTY_CRC in properties:
        raise PropertiesIllegalError(f"{PROPERTY_CRC} is the store's to write")
    request_id = {UNIQ_KEY: request.request_id} if request.request_id else {}
    require_writable(request_id)
    if len(request.request_id) > _MAX_REQUEST_ID_LENGTH:
        raise PropertiesIllegalError("request_id is too long", limit=_MAX_REQUEST_ID_LENGTH)
    if request.sys_flag & TRANSACTION_MASK:
        raise BatchTransactionError("a batch carries transaction bits", sys_flag=request.sys_flag)
    if properties.get(DELAY, "0") != "0" or any(name in properties for name in TIMER_NAMES):
        raise BatchDelayError("the batch asks for a delayed delivery")
    _check_inner(request, config)


def _check_inner(request: AppendBatchRequest, config: TopicConfig) -> None:
    flags = request.sys_flag & INNER_BATCH_FLAGS
    if INNER_NUM in request.properties and not flags & SysFlag.INNER_BATCH:
        raise InnerBatchIllegalError("INNER_NUM without the flag of an inner batch", sys_flag=request.sys_flag)
    if INNER_MULTI_DISPATCH in request.properties:
        raise InnerBatchIllegalError("a batch is not dispatched to several queues")
    if flags and not config.is_batch:
        raise InnerBatchIllegalError("an inner batch on a topic of single messages", topic=config.name)
    if config.is_batch and request.sys_flag & SysFlag.COMPRESSED:
        raise InnerBatchIllegalError("an inner batch is not compressed", sys_flag=request.sys_flag)


def _wrapper(request: AppendBatchRequest, born_host: bytes) -> Wrapper:
    return Wrapper(
        born_host=born_host,
        born_timestamp=request.born_timestamp_ms or time.time_ns() // 1_000_000,
        sys_flag=request.sys_flag,
        flag=request.flag,
        reconsume_times=request.reconsume_times,
    )


def _first_extra(request: AppendBatchRequest, facts: BatchFacts) -> bytes:
    """What goes behind the first message's properties: UNIQ_KEY from request_id, when it has none of its own."""
    if facts.unique_key or not request.request_id:
        return b""
    first = facts.first_properties
    separator = b"\x02" if first and not first.endswith(b"\x02") else b""
    extra = separator + encode_properties({UNIQ_KEY: request.request_id})
    if len(first) + len(extra) > MAX_PROPERTIES_SIZE_BYTES:
        raise PropertiesSizeExceededError(
            "the first message's properties are too long with the request id",
            at=0,
            size=len(first) + len(extra),
            limit=MAX_PROPERTIES_SIZE_BYTES,
        )
    return extra
