"""Table of failures on the wire: exception ⇄ reason ⇄ gRPC code ⇄ HTTP status, and the remoting response code.

The writer's interceptor, the query service's problem+json and the remoting servers map exceptions to the wire, clients
map back. Codes are given by name, so that this module needs neither grpc nor the remoting protocol.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark import errors
from tidemark.errors import StoreError

DOMAIN = "tidemark"  # domain of google.rpc.ErrorInfo


class Status(NamedTuple):
    """Representation of one exception on the wire."""

    reason: str
    grpc_code: str
    http_status: int
    put_status: str  # RocketMQ's PutMessageStatus, docs/format.md §15; "" if it has none
    response_code: str = "SYSTEM_ERROR"  # of the remoting protocol, a name of RocketMQ's ResponseCode


STATUS: dict[type[StoreError], Status] = {
    errors.TopicIllegalError: Status("TOPIC_ILLEGAL", "INVALID_ARGUMENT", 422, "MESSAGE_ILLEGAL", "INVALID_PARAMETER"),
    errors.TopicNotFoundError: Status("TOPIC_NOT_FOUND", "NOT_FOUND", 404, "", "TOPIC_NOT_EXIST"),
    errors.TopicForbiddenError: Status("TOPIC_FORBIDDEN", "PERMISSION_DENIED", 403, "", "NO_PERMISSION"),
    errors.TopicExistsError: Status("TOPIC_EXISTS", "ALREADY_EXISTS", 409, ""),
    errors.TopicAttributeError: Status("TOPIC_ATTRIBUTE_ILLEGAL", "INVALID_ARGUMENT", 422, "", "INVALID_PARAMETER"),
    errors.QueueIllegalError: Status("QUEUE_ID_ILLEGAL", "INVALID_ARGUMENT", 404, "", "INVALID_PARAMETER"),
    errors.MessageSizeExceededError: Status(
        "MESSAGE_SIZE_EXCEEDED", "INVALID_ARGUMENT", 413, "MESSAGE_ILLEGAL", "MESSAGE_ILLEGAL"
    ),
    errors.PropertiesSizeExceededError: Status(
        "PROPERTIES_SIZE_EXCEEDED", "INVALID_ARGUMENT", 413, "PROPERTIES_SIZE_EXCEEDED", "MESSAGE_ILLEGAL"
    ),
    errors.PropertiesIllegalError: Status(
        "PROPERTIES_ILLEGAL", "INVALID_ARGUMENT", 422, "MESSAGE_ILLEGAL", "MESSAGE_ILLEGAL"
    ),
    errors.BatchMalformedError: Status(
        "BATCH_MALFORMED", "INVALID_ARGUMENT", 422, "MESSAGE_ILLEGAL", "MESSAGE_ILLEGAL"
    ),
    errors.BatchEmptyError: Status("BATCH_EMPTY", "INVALID_ARGUMENT", 422, "MESSAGE_ILLEGAL", "MESSAGE_ILLEGAL"),
    errors.BatchTransactionError: Status(
        "BATCH_TRANSACTION", "INVALID_ARGUMENT", 422, "MESSAGE_ILLEGAL", "NO_PERMISSION"
    ),
    errors.BatchDelayError: Status("BATCH_DELAY", "INVALID_ARGUMENT", 422, "MESSAGE_ILLEGAL", "MESSAGE_ILLEGAL"),
    errors.BatchRetryTopicError: Status(
        "BATCH_RETRY_TOPIC", "INVALID_ARGUMENT", 422, "MESSAGE_ILLEGAL", "MESSAGE_ILLEGAL"
    ),
    errors.InnerBatchIllegalError: Status(
        "INNER_BATCH_ILLEGAL", "INVALID_ARGUMENT", 422, "MESSAGE_ILLEGAL", "MESSAGE_ILLEGAL"
    ),
    errors.RequestConflictError: Status("REQUEST_ID_CONFLICT", "ALREADY_EXISTS", 409, "", "MESSAGE_ILLEGAL"),
    errors.NextOffsetMismatchError: Status("NEXT_OFFSET_MISMATCH", "FAILED_PRECONDITION", 412, "", "INVALID_PARAMETER"),
    errors.GroupActiveError: Status("GROUP_ACTIVE", "FAILED_PRECONDITION", 409, ""),
    errors.GroupStrategyConflictError: Status("GROUP_STRATEGY_CONFLICT", "FAILED_PRECONDITION", 409, ""),
    errors.GenerationStaleError: Status("GENERATION_STALE", "ABORTED", 409, ""),
    errors.MemberFencedError: Status("MEMBER_FENCED", "ABORTED", 409, ""),
    errors.UnauthenticatedError: Status("UNAUTHENTICATED", "UNAUTHENTICATED", 401, "", "NO_PERMISSION"),
    errors.ForbiddenError: Status("FORBIDDEN", "PERMISSION_DENIED", 403, "", "NO_PERMISSION"),
    errors.ArgumentIllegalError: Status("ARGUMENT_ILLEGAL", "INVALID_ARGUMENT", 422, "", "INVALID_PARAMETER"),
    errors.ForkedProcessError: Status("FORKED_PROCESS", "FAILED_PRECONDITION", 409, ""),
    errors.DeadlineMissingError: Status("DEADLINE_MISSING", "INVALID_ARGUMENT", 422, ""),
    errors.FrameIllegalError: Status("FRAME_ILLEGAL", "INVALID_ARGUMENT", 422, ""),
    errors.FieldIllegalError: Status("FIELD_ILLEGAL", "INVALID_ARGUMENT", 422, ""),
    errors.PieceIllegalError: Status("PIECE_ILLEGAL", "FAILED_PRECONDITION", 409, ""),
    errors.OffsetTooSmallError: Status("OFFSET_TOO_SMALL", "OUT_OF_RANGE", 410, "", "PULL_OFFSET_MOVED"),
    errors.OffsetOutOfRangeError: Status("OFFSET_OUT_OF_RANGE", "OUT_OF_RANGE", 416, "", "PULL_OFFSET_MOVED"),
    errors.MessageNotFoundError: Status("NOT_FOUND", "NOT_FOUND", 404, "", "QUERY_NOT_FOUND"),
    errors.MessageNotYetVisibleError: Status("NOT_YET_VISIBLE", "NOT_FOUND", 404, "", "QUERY_NOT_FOUND"),
    errors.CorruptMessageError: Status("CORRUPT_MESSAGE", "DATA_LOSS", 500, ""),
    errors.CorruptStoreError: Status("CORRUPT_STORE", "DATA_LOSS", 500, ""),
    errors.ReplicaDivergedError: Status("REPLICA_DIVERGED", "DATA_LOSS", 500, ""),
    errors.ArchiveDiffersError: Status("ARCHIVE_DIFFERS", "DATA_LOSS", 500, ""),
    errors.StoreClosedError: Status(
        "STORE_CLOSED", "UNAVAILABLE", 503, "SERVICE_NOT_AVAILABLE", "SERVICE_NOT_AVAILABLE"
    ),
    errors.StoreLockedError: Status(
        "STORE_LOCKED", "UNAVAILABLE", 503, "SERVICE_NOT_AVAILABLE", "SERVICE_NOT_AVAILABLE"
    ),
    errors.StoreContradictionError: Status("STORE_CONTRADICTION", "FAILED_PRECONDITION", 503, ""),
    errors.DiskFullError: Status(
        "DISK_FULL", "RESOURCE_EXHAUSTED", 507, "SERVICE_NOT_AVAILABLE", "SERVICE_NOT_AVAILABLE"
    ),
    errors.FlushFailedError: Status("FLUSH_FAILED", "INTERNAL", 500, "UNKNOWN_ERROR"),
    errors.InFlightLimitError: Status(
        "IN_FLIGHT_LIMIT", "RESOURCE_EXHAUSTED", 429, "OS_PAGE_CACHE_BUSY", "SYSTEM_BUSY"
    ),
    errors.DiskFailedError: Status("DISK_FAILED", "UNAVAILABLE", 503, "UNKNOWN_ERROR"),
    errors.WriterUnreachableError: Status("WRITER_UNREACHABLE", "UNAVAILABLE", 503, "", "SERVICE_NOT_AVAILABLE"),
    errors.StaleEpochError: Status("STALE_EPOCH", "UNAVAILABLE", 503, "", "SERVICE_NOT_AVAILABLE"),
    errors.NotLeaderError: Status("NOT_LEADER", "UNAVAILABLE", 421, "SERVICE_NOT_AVAILABLE", "SERVICE_NOT_AVAILABLE"),
    errors.InSyncReplicasNotEnoughError: Status(
        "IN_SYNC_REPLICAS_NOT_ENOUGH", "UNAVAILABLE", 503, "IN_SYNC_REPLICAS_NOT_ENOUGH"
    ),
    errors.GroupStoreUnavailableError: Status(
        "GROUP_STORE_UNAVAILABLE", "UNAVAILABLE", 503, "", "SERVICE_NOT_AVAILABLE"
    ),
    errors.BrokerUnreachableError: Status("BROKER_UNREACHABLE", "UNAVAILABLE", 503, "", "SERVICE_NOT_AVAILABLE"),
    errors.QueryUnreachableError: Status("QUERY_UNREACHABLE", "UNAVAILABLE", 503, "", "SERVICE_NOT_AVAILABLE"),
    errors.DeadlineExceededError: Status("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", 504, "", "SYSTEM_BUSY"),
    errors.GroupFullError: Status("GROUP_FULL", "RESOURCE_EXHAUSTED", 429, ""),
    errors.OffsetsFullError: Status("OFFSETS_FULL", "RESOURCE_EXHAUSTED", 429, ""),
    errors.StoreTooNewError: Status("STORE_TOO_NEW", "FAILED_PRECONDITION", 503, ""),
    errors.StoreUnsafeError: Status("STORE_UNSAFE", "FAILED_PRECONDITION", 503, ""),
    errors.PlaintextRefusedError: Status("PLAINTEXT_REFUSED", "FAILED_PRECONDITION", 503, ""),
    errors.TlsFilesError: Status("TLS_FILES_ILLEGAL", "FAILED_PRECONDITION", 503, ""),
    errors.TlsFailedError: Status("TLS_FAILED", "UNAVAILABLE", 503, "", "SERVICE_NOT_AVAILABLE"),
    errors.AccessFileError: Status("ACCESS_FILE_ILLEGAL", "FAILED_PRECONDITION", 503, ""),
    errors.TokenFileError: Status("TOKEN_FILE_ILLEGAL", "FAILED_PRECONDITION", 503, ""),
    errors.RateLimitedError: Status("RATE_LIMITED", "RESOURCE_EXHAUSTED", 429, "", "FLOW_CONTROL"),
}

UNKNOWN = Status("INTERNAL", "INTERNAL", 500, "UNKNOWN_ERROR")

BY_REASON: dict[str, type[StoreError]] = {status.reason: leaf for leaf, status in STATUS.items()}


def status_of(error: BaseException) -> Status:
    """Return the status of *error*; INTERNAL unless it is a StoreError leaf."""
    for leaf in type(error).__mro__:
        if leaf in STATUS:
            return STATUS[leaf]
    return UNKNOWN


def error_of(reason: str, message: str, /, **facts: errors.Fact) -> StoreError:
    """Return the exception that a client raises for *reason* received over the wire."""
    return BY_REASON.get(reason, StoreError)(message, **facts)
