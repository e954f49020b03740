"""What of a request is checked before its messages are looked at: queue, retry topics, the wrapper (format.md §15)."""

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

_MAX_REQUEST_ID_LENGTH = 255


def check_request(request: AppendBatchRequest, config: TopicConfig) -> None:
    """Raises a RejectedError leaf."""
    _check_queue(request, config)
    if config.name.startswith(RETRY_PREFIX) and not is_single(request, config):
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
        raise BatchTransactionError(
            f"sys_flag {request.sys_flag} has bits of a transaction ({TRANSACTION_MASK}), and this store takes no "
            "transactional messages: clear them",
            sys_flag=request.sys_flag,
        )
    if not is_retry(request):
        if is_transactional(properties):
            raise transaction_error()
        require_no_timer(properties)
    if properties.get(DELAY, "0") != "0" and not is_single(request, config):
        raise BatchDelayError(
            f"the batch has DELAY={properties[DELAY][:64]}, and only single messages are delayed: "
            "send its messages one by one",
            name=DELAY,
        )
    _check_inner(request, config)


def is_retry(request: AppendBatchRequest) -> bool:
    """Return True for a message that a group has read and sends on for another try, or to its dead letters.

    It keeps the properties with which it was stored; a broker, too, ignores those of transactions and timers then.
    """
    return request.reconsume_times > 0 and group_of(request.topic) is not None


def transaction_error(at: int | None = None) -> BatchTransactionError:
    """Return the refusal of message *at* of the batch; None: of the request's own properties."""
    whose = "the request" if at is None else f"message {at} of the batch"
    return BatchTransactionError(
        f"{whose} has {TRAN_MSG}=true, and this store takes no transactional messages: send it without {TRAN_MSG}",
        at=at,
        name=TRAN_MSG,
    )


def is_single(request: AppendBatchRequest, config: TopicConfig) -> bool:
    """Whether this is one message for a topic of single messages; its bytes may still be malformed."""
    if config.is_batch:
        return False
    if request.WhichOneof("payload") == "messages":
        return len(request.messages.messages) == 1
    return len(request.packed) > 0 and int.from_bytes(request.packed[:4], "big") == len(request.packed)


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
