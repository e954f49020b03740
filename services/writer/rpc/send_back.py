"""SendBack: stores a message of the log for another try of its group, or as a dead letter.

RocketMQ: AbstractSendMessageProcessor.consumerSendMsgBack. Unlike the broker's copy, this one has a UNIQ_KEY made from
the original's location, the group and the attempt, so that a repeated request stores only one copy.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from typing import NamedTuple

from tidemark.errors import (
    ArgumentIllegalError,
    BatchMalformedError,
    BatchRetryTopicError,
    CorruptMessageError,
    MessageNotFoundError,
    MessageSizeExceededError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    PropertiesSizeExceededError,
    TopicForbiddenError,
)
from tidemark.format.elements import Element, decode_elements, encode_elements
from tidemark.format.message_id import encode_offset_message_id
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES, masked_crc32
from tidemark.format.properties import (
    DELAY,
    DLQ_ORIGIN_MESSAGE_ID,
    DLQ_ORIGIN_TOPIC,
    INNER_BASE,
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
    INNER_NUM,
    ORIGIN_MESSAGE_ID,
    PROPERTY_CRC,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    RETRY_TOPIC,
    UNIQ_KEY,
    decode_properties,
    encode_properties,
    require_writable,
)
from tidemark.format.record import BLANK_SIZE, Record, decode_record
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, TRANSACTION_MASK, SysFlag
from tidemark.format.tags import MAX_DELAY_LEVEL
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, FORBIDDEN_TOPICS, MAX_GROUP_LENGTH, RETRY_PREFIX
from tidemark.store.originals.topics import PERMISSION_WRITE
from tidemark.v1.commit_log_pb2 import SendBackRequest

from ..admission.dead_letters import limit_of_tries
from ..batch.batch import Batch, QueueKey, Wrapper
from ..batch.delayed_message import delayed
from ..batch.record_encoder import Encoder, u8
from ..log.commit_log import CommitLog
from ..topics.topic_table import TopicTable, WritableTopic
from .committed_bytes import LogReader

_SIZE_FIELD = 4
_MAX_RECORD_SIZE = (1 << 31) - 1
_FIRST_DELAY_LEVEL = 3  # as in RocketMQ: 10 s after the first try
_MAX_DIGITS = (1 << 63) - 1
_STORES_OWN = (  # properties that describe how and where the original was stored
    DELAY,
    REAL_TOPIC,
    REAL_QUEUE_ID,
    INNER_NUM,
    INNER_BASE,
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
    PROPERTY_CRC,
)


class Copy(NamedTuple):
    """The message to store.

    delay_level: 0 for none. may_share_key: the key is the original's, which a message of another topic may have, too.
    """

    topic: str
    element: Element
    wrapper: Wrapper
    unique_key: str
    delay_level: int
    may_share_key: bool

    @property
    def is_dead_letter(self) -> bool:
        """Return True if the message goes to the dead letters."""
        return self.topic.startswith(DEAD_LETTER_PREFIX)


class SendBack:
    """Finds originals and makes their copies. Lives on the event loop.

    max_reconsume_times: the limit if neither the request nor the message has one.
    """

    def __init__(
        self, commit_log: CommitLog, topics: TopicTable, reader: LogReader, store_host: bytes, max_reconsume_times: int
    ) -> None:
        self._commit_log = commit_log
        self._topics = topics
        self._reader = reader
        self._encoder = Encoder(store_host)  # for sizes only
        self._max_reconsume_times = max_reconsume_times

    async def copy_of(self, request: SendBackRequest) -> Copy:
        """Read the original and return its copy.

        Raises a RejectedError leaf, OffsetTooSmallError, OffsetOutOfRangeError, MessageNotFoundError, or
        CorruptMessageError for a record that fails its check.
        """
        _check(request)
        record = await self._read(request)
        element = _element_of(record, request)
        return _copy(record, element, request, self._max_reconsume_times)

    def batch_of(self, copy: Copy, topic: WritableTopic, answer: Callable[[Batch], None]) -> Batch:
        """Return *copy* as a batch of *topic*. Raises a RejectedError leaf if *topic* cannot store it."""
        config, element = topic.config, copy.element
        if config.is_batch:
            raise BatchRetryTopicError(
                f"{config.name} has queue.type BatchCQ, but a retry topic must store single messages: "
                "delete it and create it again without that type",
                topic=config.name,
            )
        if not config.permission & PERMISSION_WRITE or config.write_queues < 1:
            raise TopicForbiddenError(
                f"topic {config.name} is not writable: it has permission {config.permission} and "
                f"{config.write_queues} write queues",
                topic=config.name,
                permission=config.permission,
            )
        batch = Batch(
            key=QueueKey(config.name, zlib.crc32(copy.unique_key.encode()) % config.write_queues),
            topic_field=topic.field,
            wire=u8(encode_elements([element])),
            count=1,
            parts_size=len(element.body) + len(element.properties),
            wrapper=copy.wrapper,
            unique_key=copy.unique_key.encode(),
            first_extra=u8(b""),
            may_share_key=copy.may_share_key,
            answer=answer,
        )
        if copy.delay_level:
            batch = delayed(batch, copy.delay_level, lambda: copy.unique_key)
        size = self._encoder.size(batch, _MAX_DIGITS)
        if size + BLANK_SIZE > self._commit_log.segment_size:
            limit = self._commit_log.segment_size - BLANK_SIZE
            raise MessageSizeExceededError(
                f"the copy takes {size:,} bytes in the log, and a CommitLog file holds at most {limit:,}",
                size=size,
                limit=limit,
            )
        return batch

    async def _read(self, request: SendBackRequest) -> Record:
        """Return the record at the request's offset, which must be committed, intact, not deleted, and of its topic."""
        place, least, end = request.physical_offset, self._commit_log.min_offset, self._commit_log.committed.offset
        if place < least:
            raise OffsetTooSmallError(
                f"physical_offset is {place}, but the log begins at {least}", min_offset=least, max_offset=end
            )
        if place >= end:
            raise OffsetOutOfRangeError(
                f"physical_offset is {place}, but the log is committed up to {end}", min_offset=least, max_offset=end
            )
        size = int.from_bytes(await self._bytes(place, min(place + _SIZE_FIELD, end)), "big")
        data = b"" if size > _MAX_RECORD_SIZE else await self._bytes(place, min(place + size, end))
        try:
            record = decode_record(data)
        except CorruptMessageError as error:
            raise MessageNotFoundError(f"no record begins at physical offset {place}", physical_offset=place) from error
        if record.physical_offset != place:
            raise MessageNotFoundError(f"no record begins at physical offset {place}", physical_offset=place)
        if record.body_crc != masked_crc32(record.body):
            raise CorruptMessageError(
                f"the body of the record at {place} does not match its CRC", physical_offset=place, reason="BODY_CRC"
            )
        if record.topic != request.topic.encode():
            raise ArgumentIllegalError(
                f"the record at {place} is not of topic {request.topic}: give the topic from which the message was "
                "read",
                argument="topic",
            )
        if place < self._topics.dead_end(request.topic):
            raise MessageNotFoundError(
                f"the message at {place} was deleted with topic {request.topic}", physical_offset=place
            )
        return record

    async def _bytes(self, start: int, end: int) -> bytes:
        """Return the log's bytes from *start* to *end*; fewer if the log does not have them all."""
        parts: list[bytes] = []
        while start < end:
            part = await self._reader.read(start, end)
            if not part:
                break
            parts.append(part)
            start += len(part)
        return b"".join(parts)


def _check(request: SendBackRequest) -> None:
    group = request.group
    if not 1 <= len(group) <= MAX_GROUP_LENGTH or "+" in group:
        raise ArgumentIllegalError(
            f"group {group[:255]!r} is not a group name: use 1 to {MAX_GROUP_LENGTH} letters, digits and %|-_",
            argument="group",
            group=group[:255],
        )
    if request.topic in FORBIDDEN_TOPICS:
        raise TopicForbiddenError(
            f"messages of topic {request.topic} cannot be sent back, because no group may read it", topic=request.topic
        )
    if request.physical_offset < 0:
        raise ArgumentIllegalError(
            f"physical_offset is {request.physical_offset}, and must be at least 0", argument="physical_offset"
        )
    if request.delay_level > MAX_DELAY_LEVEL:
        raise ArgumentIllegalError(
            f"delay_level is {request.delay_level}: give 1 to {MAX_DELAY_LEVEL}, 0 for the default, or a negative "
            "number for the dead letters",
            argument="delay_level",
            limit=MAX_DELAY_LEVEL,
        )
    if request.origin_message_id:
        require_writable({ORIGIN_MESSAGE_ID: request.origin_message_id})


def _element_of(record: Record, request: SendBackRequest) -> Element:
    """Return the requested message: the record itself, or an element of its inner batch."""
    is_batch = bool(record.sys_flag & SysFlag.INNER_BATCH)
    if is_batch != request.HasField("inner_index"):
        there = "an inner batch: give inner_index" if is_batch else "a single message: leave inner_index out"
        raise ArgumentIllegalError(f"the record at {request.physical_offset} is {there}", argument="inner_index")
    if not is_batch:
        return Element(record.body, record.properties, record.flag)
    element = None
    if request.inner_index >= 0:
        try:
            element = next(itertools.islice(decode_elements(record.body), request.inner_index, None), None)
        except BatchMalformedError as error:
            raise CorruptMessageError(
                f"the inner batch at {request.physical_offset} is malformed",
                physical_offset=request.physical_offset,
                reason="INNER_BATCH",
            ) from error
    if element is None:
        raise ArgumentIllegalError(
            f"inner_index is {request.inner_index}, but the inner batch at {request.physical_offset} has no message "
            "with that index (the first has 0)",
            argument="inner_index",
        )
    return element


def _copy(record: Record, element: Element, request: SendBackRequest, default_limit: int) -> Copy:
    properties = decode_properties(element.properties)
    tried = record.reconsume_times
    given = request.max_reconsume_times if request.HasField("max_reconsume_times") else -1
    limit = given if given >= 0 else limit_of_tries(properties, default_limit)
    is_dead = tried >= limit or request.delay_level < 0
    level = 0 if is_dead else min(request.delay_level or _FIRST_DELAY_LEVEL + tried, MAX_DELAY_LEVEL)
    message_id = properties.get(UNIQ_KEY) or _place_of(record, request)
    may_share_key = request.keep_unique_key and bool(properties.get(UNIQ_KEY))
    unique_key = message_id if may_share_key else f"{_place_of(record, request)}-{request.group}-{tried + 1}"
    kept = {name: value for name, value in properties.items() if name not in _STORES_OWN}
    kept[UNIQ_KEY] = unique_key
    kept.setdefault(RETRY_TOPIC, request.topic)
    origin = kept.setdefault(ORIGIN_MESSAGE_ID, request.origin_message_id or message_id)
    if is_dead:
        kept |= {DLQ_ORIGIN_TOPIC: kept[RETRY_TOPIC], DLQ_ORIGIN_MESSAGE_ID: origin}
    text = encode_properties(kept)
    if len(text) > MAX_PROPERTIES_SIZE_BYTES:
        raise PropertiesSizeExceededError(
            f"the message's properties are {len(text):,} bytes with those of a retry, and the limit is "
            f"{MAX_PROPERTIES_SIZE_BYTES:,}",
            size=len(text),
            limit=MAX_PROPERTIES_SIZE_BYTES,
        )
    wrapper = Wrapper(
        born_host=record.born_host,
        born_timestamp=record.born_timestamp,
        sys_flag=record.sys_flag & ~(INNER_BATCH_FLAGS | TRANSACTION_MASK),
        flag=element.flag,
        reconsume_times=tried + 1,
    )
    prefix = DEAD_LETTER_PREFIX if is_dead else RETRY_PREFIX
    return Copy(
        f"{prefix}{request.group}", element._replace(properties=text), wrapper, unique_key, level, may_share_key
    )


def _place_of(record: Record, request: SendBackRequest) -> str:
    """Return the offset message id, followed by the index in the inner batch if there is one."""
    place = encode_offset_message_id(record.store_host, record.physical_offset)
    return f"{place}-{request.inner_index}" if request.HasField("inner_index") else place
