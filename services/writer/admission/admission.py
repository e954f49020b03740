"""Admission: checks a whole request before anything is written. The order of checks: docs/format.md §15.

One message for a topic of single messages is RocketMQ's single send: it may be delayed, and may go to a retry topic.
Every other request is a batch. The only state is the position of the round robin; runs on the event loop.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

from tidemark.errors import (
    ArgumentIllegalError,
    BatchDelayError,
    BatchEmptyError,
    InnerBatchIllegalError,
    MessageSizeExceededError,
    PropertiesIllegalError,
    PropertiesSizeExceededError,
)
from tidemark.format.dispatch_request import U8Array
from tidemark.format.elements import decode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.primitives import MAX_INNER_BATCH_COUNT, MAX_PROPERTIES_SIZE_BYTES, queue_of_key
from tidemark.format.properties import (
    INNER_BASE,
    INNER_NUM,
    PROPERTY_CRC,
    UNIQ_KEY,
    WAIT,
    decode_properties,
    encode_properties,
    is_java_true,
    split_keys,
)
from tidemark.format.record import BLANK_SIZE
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, RETRY_PREFIX
from tidemark.format.wire_batch import BatchFacts, add_unique_keys, scan, unique_key_after
from tidemark.store.originals.topics import TopicConfig
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

from ..batch.batch import Batch, QueueKey, Wrapper
from ..batch.delayed_message import delay_level, delayed, require_no_timer
from ..batch.record_encoder import Encoder, u8
from ..topics.topic_table import WritableTopic
from .request_rules import is_retry, transaction_error

_SINGLE_SLACK = 65_536  # a record may be larger than the largest body by this much (docs/format.md §15)
_MAX_DIGITS = (1 << 63) - 1


class SizeLimits(NamedTuple):
    """Size limits in bytes."""

    max_message_size: int
    segment_size: int


class Admission:
    """Turns requests into batches, or rejects them with a reason."""

    def __init__(self, limits: SizeLimits, store_host: bytes, *, unique_keys: UniqueKeys | None = None) -> None:
        self._limits = limits
        self._encoder = Encoder(store_host)  # for sizes only
        self._unique_keys = unique_keys or UniqueKeys()
        self._turns: dict[str, int] = {}

    def admit(
        self,
        request: AppendBatchRequest,
        topic: WritableTopic,
        payload: bytes | memoryview,
        *,
        born_host: bytes,
        answer: Callable[[Batch], None],
    ) -> Batch:
        """Return the batch for *request*, which passed `check_request`. *payload* is its wire batch.

        Raises a RejectedError leaf. A rejection changes no state.
        """
        config = topic.config
        is_batch = config.is_batch
        wire = u8(payload)
        if wire.size > self._limits.max_message_size + _SINGLE_SLACK:
            raise self._too_large(wire.size)
        facts = scan(wire)
        self._check_facts(facts, wire.size, config.name, is_batch=is_batch)
        if not is_retry(request):
            _require_supported(facts, wire)
        if _needs_unique_keys(facts, is_batch=is_batch):
            wire, facts = self._with_unique_keys(request, wire, facts, config)
        level = 0 if is_batch or facts.count != 1 else self._delay_level(request, facts)
        unique_key = facts.unique_key or request.request_id.encode()
        inner_properties = None
        if is_batch:
            unique_key, inner_properties = self._inner_properties(request, facts)
        batch = Batch(
            key=QueueKey(config.name, self._choose_queue(request, config, facts)),
            topic_field=topic.field,
            wire=wire,
            count=facts.count,
            parts_size=facts.parts_size,
            wrapper=_wrapper(request, born_host),
            unique_key=unique_key,
            first_extra=u8(b"" if is_batch else _first_extra(request, facts)),
            inner_properties=inner_properties,
            expected_next_offset=request.expected_next_offset if request.HasField("expected_next_offset") else None,
            waits_for_flush=_waits_for_flush(request, facts),
            answer=answer,
        )
        if level:
            batch = delayed(batch, level, self._unique_keys.make)
        size = self._encoder.size(batch, _MAX_DIGITS) + max(0, topic.field.size - batch.topic_field.size)
        if size + BLANK_SIZE > self._limits.segment_size:
            raise MessageSizeExceededError(
                f"the batch takes {size:,} bytes in the log, and a CommitLog file holds at most "
                f"{self._limits.segment_size - BLANK_SIZE:,}: send fewer or smaller messages in a batch",
                size=size,
                limit=self._limits.segment_size - BLANK_SIZE,
            )
        return batch

    def _with_unique_keys(
        self, request: AppendBatchRequest, wire: U8Array, facts: BatchFacts, config: TopicConfig
    ) -> tuple[U8Array, BatchFacts]:
        """Return *wire* with a UNIQ_KEY for every message, and its facts; both unchanged if the request has no id.

        RocketMQ's own producer sets a UNIQ_KEY on each message of a batch; other programs may not.
        """
        if not request.request_id:
            return wire, facts
        keyed = add_unique_keys(wire, facts.count, facts.unique_key or request.request_id.encode())
        if config.is_batch and keyed.size > self._limits.max_message_size + _SINGLE_SLACK:
            limit = self._limits.max_message_size + _SINGLE_SLACK
            raise MessageSizeExceededError(
                f"the batch is {keyed.size:,} bytes with a UNIQ_KEY for each message, and an inner batch may have "
                f"at most {limit:,}: send fewer messages in a batch",
                size=keyed.size,
                limit=limit,
            )
        return keyed, scan(keyed)

    def _too_large(self, size: int) -> MessageSizeExceededError:
        limit = self._limits.max_message_size
        text = f"the batch is {size:,} bytes, and the limit is {limit:,}: send fewer or smaller messages in a batch"
        return MessageSizeExceededError(text, size=size, limit=limit)

    def _check_facts(self, facts: BatchFacts, wire_size: int, topic: str, *, is_batch: bool) -> None:
        limit = self._limits.max_message_size
        if facts.count == 0:
            raise BatchEmptyError("the batch has no messages: send at least one")
        if facts.empty_body_at is not None:
            raise BatchEmptyError(
                f"message {facts.empty_body_at} of the batch has an empty body", at=facts.empty_body_at
            )
        single = facts.count == 1 and not is_batch  # as for a single send, the limit applies to the body only
        if (facts.parts_size - len(facts.first_properties) if single else wire_size) > limit:
            raise self._too_large(wire_size)
        if facts.delay_at is not None and not single:
            raise BatchDelayError(
                f"message {facts.delay_at} of the batch has a delay, and only single messages can be delayed: "
                "send it by itself",
                at=facts.delay_at,
            )
        if facts.inner_at is not None:
            raise InnerBatchIllegalError(
                f"message {facts.inner_at} of the batch is marked as a batch itself, and batches cannot be nested",
                at=facts.inner_at,
            )
        if facts.crc_at is not None:  # a wrong value would make the record count as damaged
            raise PropertiesIllegalError(
                f"message {facts.crc_at} of the batch has the property {PROPERTY_CRC}, which only the store may set: "
                "leave it out",
                at=facts.crc_at,
            )
        if facts.unfindable_at is not None and not topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX)):
            raise PropertiesIllegalError(
                f"message {facts.unfindable_at} of the batch has a tag or key that cannot be queried: a tag must not "
                "be *, contain ||, or begin or end with a space; tags and keys must not contain control characters",
                at=facts.unfindable_at,
            )
        if is_batch and facts.count > MAX_INNER_BATCH_COUNT:
            raise InnerBatchIllegalError(
                f"the batch has {facts.count:,} messages, and an inner batch may have at most "
                f"{MAX_INNER_BATCH_COUNT:,}: send fewer messages in a batch",
                count=facts.count,
                limit=MAX_INNER_BATCH_COUNT,
            )

    def _delay_level(self, request: AppendBatchRequest, facts: BatchFacts) -> int:
        """Return the delay level of a single message, from its own property or the request's; 0 for no delay."""
        own = 0 if facts.delay_at is None else delay_level(decode_properties(facts.first_properties))
        level = own or delay_level(request.properties)
        if level and request.HasField("expected_next_offset"):
            raise ArgumentIllegalError(
                f"expected_next_offset cannot be combined with a delay (level {level}), because the queue offset is "
                "assigned at delivery: leave one of them out",
                argument="expected_next_offset",
            )
        return level

    def _inner_properties(self, request: AppendBatchRequest, facts: BatchFacts) -> tuple[bytes, bytes]:
        """Return the deduplication key and the record's properties without INNER_BASE, for a BatchCQ topic."""
        properties = dict(request.properties)
        claimed = properties.pop(INNER_NUM, str(facts.count))
        if claimed != str(facts.count):
            raise InnerBatchIllegalError(
                f"INNER_NUM is {claimed[:64]}, but the batch has {facts.count} messages: correct it or leave it out",
                claimed=claimed,
                count=facts.count,
            )
        properties.pop(INNER_BASE, None)
        given = properties.pop(UNIQ_KEY, "") or request.request_id or facts.unique_key.decode("utf-8", "replace")
        own = {INNER_NUM: str(facts.count), UNIQ_KEY: given or self._unique_keys.make()}
        encoded = encode_properties(own | {name: properties[name] for name in sorted(properties)})
        if len(encoded) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                f"the batch's properties are {len(encoded):,} bytes, and the limit is {MAX_PROPERTIES_SIZE_BYTES:,}",
                size=len(encoded),
                limit=MAX_PROPERTIES_SIZE_BYTES,
            )
        return given.encode(), encoded

    def _choose_queue(self, request: AppendBatchRequest, config: TopicConfig, facts: BatchFacts) -> int:
        if request.HasField("queue_id"):
            return request.queue_id
        keys = split_keys(facts.keys.decode("utf-8", "replace"))
        key = request.routing_key or (keys[0] if keys else "")
        if key:
            return queue_of_key(key, config.write_queues)
        turn = self._turns.get(config.name, 0)
        self._turns[config.name] = turn + 1
        return turn % config.write_queues


def _require_supported(facts: BatchFacts, wire: U8Array) -> None:
    """Raise BatchTransactionError or BatchDelayError for the first message that has a transaction or a timer."""
    if facts.transaction_at is not None:
        raise transaction_error(facts.transaction_at)
    if facts.delay_at is not None:  # a level, which `_delay_level` checks, or a timer
        elements = decode_elements(wire.tobytes())
        element = next(itertools.islice(elements, facts.delay_at, None))
        require_no_timer(decode_properties(element.properties), at=facts.delay_at)


def _needs_unique_keys(facts: BatchFacts, *, is_batch: bool) -> bool:
    """Return True if keys must be written into the wire batch; for the first message alone, `first_extra` is enough."""
    first = 0 if facts.unique_key or is_batch else 1
    return facts.without_unique_key > first


def _waits_for_flush(request: AppendBatchRequest, facts: BatchFacts) -> bool:
    """Return False if the messages request, by WAIT, an answer before their flush.

    A message without WAIT takes the request's WAIT; the default is to wait.
    Raises ArgumentIllegalError if the messages of the batch differ.
    """
    waiting = facts.waiting
    properties = request.properties
    if not properties or is_java_true(properties.get(WAIT, "true")):
        waiting = facts.count - facts.not_waiting
    if 0 < waiting < facts.count:
        raise ArgumentIllegalError(
            f"the property {WAIT} differs within the batch: {waiting} messages wait for the flush and "
            f"{facts.count - waiting} do not: send them in two batches",
            argument=WAIT,
        )
    return waiting > 0


def _wrapper(request: AppendBatchRequest, born_host: bytes) -> Wrapper:
    return Wrapper(
        born_host=born_host,
        born_timestamp=request.born_timestamp_ms or time.time_ns() // 1_000_000,
        sys_flag=request.sys_flag,
        flag=request.flag,
        reconsume_times=request.reconsume_times,
    )


def _first_extra(request: AppendBatchRequest, facts: BatchFacts) -> bytes:
    """Return the bytes to append to the first message's properties: UNIQ_KEY from request_id, if it has none."""
    if facts.unique_key or not request.request_id:
        return b""
    first = facts.first_properties
    extra = unique_key_after(first, request.request_id.encode())
    if len(first) + len(extra) > MAX_PROPERTIES_SIZE_BYTES:
        raise PropertiesSizeExceededError(
            f"the first message's properties are {len(first):,} bytes, and {len(first) + len(extra):,} with the "
            f"UNIQ_KEY from the request id; the limit is {MAX_PROPERTIES_SIZE_BYTES:,}",
            at=0,
            size=len(first) + len(extra),
            limit=MAX_PROPERTIES_SIZE_BYTES,
        )
    return extra
