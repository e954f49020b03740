"""Admission: a request is checked whole before anything is written. The order of checks: docs/format.md §15.

One message for a topic of single messages is what RocketMQ calls a single send: it may be delayed, and go to a retry
topic. Everything else is a batch. Owns no state but the turns of the round robin; runs on the event loop.
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
from ..topics.topic_table import Topic
from .request_rules import is_retry, transaction_error

_SINGLE_SLACK = 65_536  # a record may be that much larger than the greatest body (docs/format.md §15)
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
        if not is_retry(request):
            _require_supported(facts, wire)
        if _needs_unique_keys(facts, config):
            wire, facts = self._with_unique_keys(request, wire, facts, config)
        level = self._delay_level(request, facts, config)
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
            waits_for_flush=_waits_for_flush(request, facts),
            answer=answer,
        )
        if level:
            batch = delayed(batch, level, self._unique_keys.make)
        size = self._encoder.size(batch, _MAX_DIGITS) + max(0, topic.field.size - batch.topic_field.size)
        if size + BLANK_SIZE > self._limits.segment_size:
            raise MessageSizeExceededError(
                "the records do not fit into one file", size=size, limit=self._limits.segment_size - BLANK_SIZE
            )
        return batch

    def _with_unique_keys(
        self, request: AppendBatchRequest, wire: U8Array, facts: BatchFacts, config: TopicConfig
    ) -> tuple[U8Array, BatchFacts]:
        """Return *wire* with a UNIQ_KEY for every message, and its facts; both unchanged when the request has no id.

        RocketMQ's own producer gives one to each message of a batch; other programs may not.
        """
        if not request.request_id:
            return wire, facts
        keyed = add_unique_keys(wire, facts.count, facts.unique_key or request.request_id.encode())
        if config.is_batch and keyed.size > self._limits.max_message_size + _SINGLE_SLACK:
            limit = self._limits.max_message_size + _SINGLE_SLACK
            raise MessageSizeExceededError(
                f"the batch is {keyed.size:,} bytes with the UNIQ_KEY that each message gets, and an inner batch has "
                f"at most {limit:,}: send fewer messages in a batch",
                size=keyed.size,
                limit=limit,
            )
        return keyed, scan(keyed)

    def _too_large(self, size: int) -> MessageSizeExceededError:
        limit = self._limits.max_message_size
        text = f"the batch is {size:,} bytes, and at most {limit:,} fit: send it in parts"
        return MessageSizeExceededError(text, size=size, limit=limit)

    def _check_facts(self, facts: BatchFacts, wire_size: int, config: TopicConfig) -> None:
        limit = self._limits.max_message_size
        if facts.count == 0:
            raise BatchEmptyError("a batch without messages")
        if facts.empty_body_at is not None:
            raise BatchEmptyError("a message without a body", at=facts.empty_body_at)
        single = facts.count == 1 and not config.is_batch  # like a single send: its body counts, not its wire form
        if (facts.parts_size - len(facts.first_properties) if single else wire_size) > limit:
            raise self._too_large(wire_size)
        if facts.delay_at is not None and not single:
            raise BatchDelayError(
                f"message {facts.delay_at} of the batch asks for a delayed delivery, and only single messages are "
                "delayed: send it by itself",
                at=facts.delay_at,
            )
        if facts.inner_at is not None:
            raise InnerBatchIllegalError("a message of the batch says that it is a batch", at=facts.inner_at)
        if facts.crc_at is not None:  # where it is wrong, the record would count as damaged
            raise PropertiesIllegalError(f"{PROPERTY_CRC} is the store's to write", at=facts.crc_at)
        if facts.unfindable_at is not None and not config.name.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX)):
            raise PropertiesIllegalError(
                f"message {facts.unfindable_at} of the batch has a tag or key that no reader can ask for: a tag is "
                "not *, holds no ||, and neither begins nor ends with a space; tags and keys hold no controls",
                at=facts.unfindable_at,
            )
        if config.is_batch and facts.count > MAX_INNER_BATCH_COUNT:
            raise InnerBatchIllegalError(
                "too many messages for an inner batch", count=facts.count, limit=MAX_INNER_BATCH_COUNT
            )

    def _delay_level(self, request: AppendBatchRequest, facts: BatchFacts, config: TopicConfig) -> int:
        """Of a single message, by its own property or else by the request's; 0 for none."""
        if facts.count != 1 or config.is_batch:
            return 0
        own = 0 if facts.delay_at is None else delay_level(decode_properties(facts.first_properties))
        level = own or delay_level(request.properties)
        if level and request.HasField("expected_next_offset"):
            raise ArgumentIllegalError("nobody knows the place of a delayed message", argument="expected_next_offset")
        return level

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
            return queue_of_key(key, config.write_queues)
        turn = self._turns.get(config.name, 0)
        self._turns[config.name] = turn + 1
        return turn % config.write_queues


def _require_supported(facts: BatchFacts, wire: U8Array) -> None:
    """Raise BatchTransactionError or BatchDelayError for the first message of a transaction, or with a timer."""
    if facts.transaction_at is not None:
        raise transaction_error(facts.transaction_at)
    if facts.delay_at is not None:  # a level, which is checked by itself, or a timer
        elements = decode_elements(wire.tobytes())
        element = next(itertools.islice(elements, facts.delay_at, None))
        require_no_timer(decode_properties(element.properties), at=facts.delay_at)


def _needs_unique_keys(facts: BatchFacts, config: TopicConfig) -> bool:
    """Return True if keys must be written into the wire batch; `first_extra` is enough for the first message alone."""
    first = 0 if facts.unique_key or config.is_batch else 1
    return facts.without_unique_key > first


def _waits_for_flush(request: AppendBatchRequest, facts: BatchFacts) -> bool:
    """Return False if the messages ask, by WAIT, for an answer before their flush.

    A message without WAIT has the request's, and waits without either. Raises ArgumentIllegalError when they differ.
    """
    waiting = facts.waiting
    if is_java_true(request.properties.get(WAIT, "true")):
        waiting = facts.count - facts.not_waiting
    if 0 < waiting < facts.count:
        raise ArgumentIllegalError(
            f"{waiting} messages of the batch wait for their flush and {facts.count - waiting} do not, by their "
            f"property {WAIT}: send them in two batches",
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
    """Return the bytes to append to the first message's properties: UNIQ_KEY from request_id, when it has none."""
    if facts.unique_key or not request.request_id:
        return b""
    first = facts.first_properties
    extra = unique_key_after(first, request.request_id.encode())
    if len(first) + len(extra) > MAX_PROPERTIES_SIZE_BYTES:
        raise PropertiesSizeExceededError(
            f"the first message's properties are {len(first):,} bytes, and {len(first) + len(extra):,} with the "
            f"UNIQ_KEY from the request id; at most {MAX_PROPERTIES_SIZE_BYTES:,} fit",
            at=0,
            size=len(first) + len(extra),
            limit=MAX_PROPERTIES_SIZE_BYTES,
        )
    return extra
