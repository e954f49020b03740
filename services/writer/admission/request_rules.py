"""Checks of a request before its messages are read: queue, retry topic and wrapper (docs/format.md §15)."""

from __future__ import annotations

from tidemark.errors import (
    ArgumentIllegalError,
    BatchDelayError,
    BatchRetryTopicError,
    BatchTransactionError,
    InnerBatchIllegalError,
    PropertiesIllegalError,
    QueueIllegalError,
    TopicForbiddenError,
)
from tidemark.format.properties import (
    DELAY,
    INNER_MULTI_DISPATCH,
    INNER_NUM,
    PROPERTY_CRC,
    TRAN_MSG,
    UNIQ_KEY,
    is_transactional,
    require_writable,
)
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, TRANSACTION_MASK, SysFlag
from tidemark.format.topic_name import RETRY_PREFIX, group_of
from tidemark.store.originals.topics import PERMISSION_WRITE, TopicConfig
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

from ..batch.delayed_message import require_no_timer
from .append_request import Received

_MAX_REQUEST_ID_LENGTH = 255
# integers, because & of an IntFlag takes longer than all other checks
_INNER_BATCH_FLAGS, _INNER_BATCH = int(INNER_BATCH_FLAGS), int(SysFlag.INNER_BATCH)
_COMPRESSED, _TRANSACTION_MASK = int(SysFlag.COMPRESSED), int(TRANSACTION_MASK)


def check_request(received: Received, config: TopicConfig) -> None:
    """Raise a RejectedError leaf if the request cannot be appended to the topic."""
    request = received.request
    _check_queue(request, config)
    if config.name.startswith(RETRY_PREFIX) and not is_single(received, config):
        raise BatchRetryTopicError(
            f"{config.name} is a retry topic, which accepts single messages only: send the messages one by one",
            topic=config.name,
        )
    _check_wrapper(received, config)


def _check_queue(request: AppendBatchRequest, config: TopicConfig) -> None:
    if not config.permission & PERMISSION_WRITE or config.write_queues < 1:
        raise TopicForbiddenError(
            f"topic {config.name} is not writable: it has permission {config.permission} and "
            f"{config.write_queues} write queues",
            topic=config.name,
            permission=config.permission,
        )
    if request.HasField("queue_id"):
        if not 0 <= request.queue_id < config.queues:
            raise QueueIllegalError(
                f"queue_id is {request.queue_id}, but topic {config.name} has {config.queues} queues (0 to "
                f"{config.queues - 1})",
                queue_id=request.queue_id,
                queues=config.queues,
            )
    elif request.HasField("expected_next_offset"):
        raise ArgumentIllegalError("expected_next_offset requires queue_id: set both", argument="queue_id")
    if request.HasField("expected_next_offset") and request.expected_next_offset < 0:
        raise ArgumentIllegalError(
            f"expected_next_offset is {request.expected_next_offset}, and must be at least 0",
            argument="expected_next_offset",
        )


def _check_wrapper(received: Received, config: TopicConfig) -> None:
    request = received.request
    properties = request.properties
    if request.born_timestamp_ms < 0:
        raise ArgumentIllegalError(
            f"born_timestamp_ms is {request.born_timestamp_ms}, and must be at least 0", argument="born_timestamp_ms"
        )
    if request.reconsume_times < 0:
        raise ArgumentIllegalError(
            f"reconsume_times is {request.reconsume_times}, and must be at least 0", argument="reconsume_times"
        )
    request_id = request.request_id
    if request_id:
        require_writable({UNIQ_KEY: request_id})
    if len(request_id) > _MAX_REQUEST_ID_LENGTH:
        raise PropertiesIllegalError(
            f"request_id has {len(request_id):,} characters, and the limit is {_MAX_REQUEST_ID_LENGTH}",
            limit=_MAX_REQUEST_ID_LENGTH,
        )
    if request.sys_flag & _TRANSACTION_MASK:
        raise BatchTransactionError(
            f"sys_flag {request.sys_flag} has transaction bits ({_TRANSACTION_MASK}), and this store does not support "
            "transactional messages: clear them",
            sys_flag=request.sys_flag,
        )
    if properties:
        _check_properties(received, config)
    _check_inner(request, config)


def _check_properties(received: Received, config: TopicConfig) -> None:
    request = received.request
    properties = request.properties
    require_writable(properties)
    if PROPERTY_CRC in properties:
        raise PropertiesIllegalError(
            f"the request has the property {PROPERTY_CRC}, which only the store may set: leave it out"
        )
    if not is_retry(request):
        if is_transactional(properties):
            raise transaction_error()
        require_no_timer(properties)
    if properties.get(DELAY, "0") != "0" and not is_single(received, config):
        raise BatchDelayError(
            f"the batch has DELAY={properties[DELAY][:64]}, and only single messages can be delayed: "
            "send its messages one by one",
            name=DELAY,
        )
    if INNER_MULTI_DISPATCH in properties:
        raise InnerBatchIllegalError(
            f"a batch cannot be dispatched to several queues: leave out the property {INNER_MULTI_DISPATCH}"
        )
    if INNER_NUM in properties and not request.sys_flag & _INNER_BATCH:
        raise InnerBatchIllegalError(
            f"the request has the property INNER_NUM, but sys_flag {request.sys_flag} lacks the inner batch bit "
            f"({_INNER_BATCH})",
            sys_flag=request.sys_flag,
        )


def is_retry(request: AppendBatchRequest) -> bool:
    """Return True for a message that a consumer group sends again for another try, or to its dead letters.

    It keeps its stored properties. For such a message the broker, too, ignores transaction and timer properties.
    """
    return request.reconsume_times > 0 and group_of(request.topic) is not None


def transaction_error(at: int | None = None) -> BatchTransactionError:
    """Return the error for message *at* of the batch, or for the request's own properties if *at* is None."""
    whose = "the request" if at is None else f"message {at} of the batch"
    return BatchTransactionError(
        f"{whose} has {TRAN_MSG}=true, and this store does not support transactional messages: "
        f"send it without {TRAN_MSG}",
        at=at,
        name=TRAN_MSG,
    )


def is_single(received: Received, config: TopicConfig) -> bool:
    """Return True for one message to a topic of single messages; its bytes may still be malformed."""
    if config.is_batch:
        return False
    packed = received.packed
    if packed is None:
        return len(received.request.messages.messages) == 1
    return len(packed) > 0 and int.from_bytes(packed[:4], "big") == len(packed)


def _check_inner(request: AppendBatchRequest, config: TopicConfig) -> None:
    sys_flag = request.sys_flag
    if sys_flag & _INNER_BATCH_FLAGS and not config.is_batch:
        raise InnerBatchIllegalError(
            f"sys_flag {sys_flag} marks an inner batch, but topic {config.name} does not have queue.type BatchCQ",
            topic=config.name,
        )
    if sys_flag & _COMPRESSED and config.is_batch:
        raise InnerBatchIllegalError(
            f"sys_flag {sys_flag} marks a compressed body, and an inner batch cannot be compressed",
            sys_flag=sys_flag,
        )
