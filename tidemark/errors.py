"""Exceptions of Tidemark, in one tree.

    StoreError
    ├── RejectedError                the request is invalid or not allowed; nothing was written
    │   ├── TopicIllegalError          ├── TopicNotFoundError      ├── TopicForbiddenError
    │   ├── TopicExistsError           ├── TopicAttributeError     ├── QueueIllegalError
    │   ├── MessageSizeExceededError   ├── PropertiesSizeExceededError
    │   ├── PropertiesIllegalError     ├── BatchMalformedError     ├── BatchEmptyError
    │   ├── BatchTransactionError      ├── BatchDelayError         ├── BatchRetryTopicError
    │   ├── InnerBatchIllegalError     ├── RequestConflictError    ├── NextOffsetMismatchError
    │   ├── GroupActiveError           ├── GroupStrategyConflictError
    │   ├── GenerationStaleError       ├── MemberFencedError
    │   ├── UnauthenticatedError       ├── ForbiddenError
    │   ├── ArgumentIllegalError       ├── ForkedProcessError
    │   ├── DeadlineMissingError       ├── FrameIllegalError
    │   └── FieldIllegalError          └── PieceIllegalError
    ├── OffsetError                  the place does not exist
    │   ├── OffsetTooSmallError        ├── OffsetOutOfRangeError
    │   └── MessageNotFoundError       └── MessageNotYetVisibleError
    ├── CorruptionError              stored bytes are damaged
    │   ├── CorruptMessageError
    │   ├── CorruptStoreError          ├── ReplicaDivergedError
    │   └── ArchiveDiffersError
    └── UnavailableError             cannot be done now
        ├── StoreClosedError           ├── StoreLockedError        ├── StoreContradictionError
        ├── DiskFullError              ├── FlushFailedError        ├── InFlightLimitError
        ├── DiskFailedError            ├── WriterUnreachableError  ├── DeadlineExceededError
        ├── GroupFullError             ├── QueryUnreachableError   ├── StaleEpochError
        ├── StoreTooNewError           ├── StoreUnsafeError        ├── PlaintextRefusedError
        ├── TlsFilesError              ├── TlsFailedError          ├── NotLeaderError
        ├── AccessFileError            ├── TokenFileError          ├── InSyncReplicasNotEnoughError
        ├── RateLimitedError           ├── OffsetsFullError        ├── GroupStoreUnavailableError
        └── BrokerUnreachableError

A leaf carries its facts as keyword arguments, which become attributes and are sent with the error over the wire.
`tidemark.status` maps each leaf to its stable reason, gRPC code and HTTP status. This module imports no other of ours.
"""

from __future__ import annotations

Fact = str | int | float | bool | None


class StoreError(Exception):
    """Base of all failures that Tidemark names. *facts* are keyword arguments: physical_offset=, path=, limit=, ..."""

    def __init__(self, message: str, /, **facts: Fact) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __getattr__(self, name: str) -> Fact:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]  # type: ignore[no-any-return]
        raise AttributeError(name)


class RejectedError(StoreError):
    """The caller's message, batch or argument is invalid or not allowed. Nothing was written."""


class TopicIllegalError(RejectedError):
    """The topic's name is not allowed: wrong characters, too long or reserved."""


class TopicNotFoundError(RejectedError):
    """The topic does not exist, and this request does not create it."""


class TopicForbiddenError(RejectedError):
    """The topic exists but does not accept messages from clients."""


class TopicExistsError(RejectedError):
    """A topic of this name with other attributes exists."""


class TopicAttributeError(RejectedError):
    """A topic attribute is unknown, malformed or cannot be changed."""


class QueueIllegalError(RejectedError):
    """The topic has no queue with this id."""


class MessageSizeExceededError(RejectedError):
    """A body, batch or record is larger than the limit."""


class PropertiesSizeExceededError(RejectedError):
    """A message's properties are longer than 32,767 bytes."""


class PropertiesIllegalError(RejectedError):
    """A property's name or value cannot be encoded or contradicts the request."""


class BatchMalformedError(RejectedError):
    """The packed bytes are not a wire batch."""


class BatchEmptyError(RejectedError):
    """The batch has no messages, or a message has no body."""


class BatchTransactionError(RejectedError):
    """The batch has transaction bits."""


class BatchDelayError(RejectedError):
    """The batch or one of its messages requests delayed delivery."""


class BatchRetryTopicError(RejectedError):
    """The batch is for a %RETRY% topic."""


class InnerBatchIllegalError(RejectedError):
    """An inner batch was sent to a topic of single messages, or its properties contradict its flags."""


class RequestConflictError(RejectedError):
    """The request id was used before for other content."""


class NextOffsetMismatchError(RejectedError):
    """expected_next_offset is not the queue's next offset. Facts: expected, actual."""


class GroupActiveError(RejectedError):
    """The group has active members, so others cannot set its offsets. Facts: group, members, generation."""


class GroupStrategyConflictError(RejectedError):
    """The group's active members share its queues by another strategy. Facts: group, strategy."""


class GenerationStaleError(RejectedError):
    """The caller does not hold, or no longer holds, the queues of the offsets.

    Facts: member_id, generation (current).
    """


class MemberFencedError(RejectedError):
    """The caller is not, or no longer, a member of the group and must join again.

    Facts: member_id, generation (current).
    """


class ArgumentIllegalError(RejectedError):
    """An argument is missing, malformed or out of range."""


class UnauthenticatedError(RejectedError):
    """The caller presented no token or certificate, or one that is unknown, invalid or expired."""


class ForbiddenError(RejectedError):
    """The caller is not allowed to do this. Facts: principal, right."""


class ForkedProcessError(RejectedError):
    """A client was used in a process that was forked after its creation. Facts: made_in, process (both process ids)."""


class DeadlineMissingError(RejectedError):
    """The call has no deadline, which the service requires."""


class FrameIllegalError(RejectedError):
    """Bytes of a remoting connection are no frame. Facts: reason (a FrameFault), at, header_at, limit, member."""


class FieldIllegalError(RejectedError):
    """A field of a remoting frame is missing or has an illegal value. Facts: field, value (None: missing), allowed."""


class PieceIllegalError(RejectedError):
    """A piece of a writer's log does not continue the log of its replica. Facts: begin, end, log_end."""


class OffsetError(StoreError):
    """The requested place does not exist."""


class OffsetTooSmallError(OffsetError):
    """The offset is below the minimum: retention deleted it. Facts: min_offset, max_offset."""


class OffsetOutOfRangeError(OffsetError):
    """The offset is above the committed end. Facts: min_offset, max_offset."""


class MessageNotFoundError(OffsetError):
    """No message has this id, place or key."""


class MessageNotYetVisibleError(OffsetError):
    """The place is committed or above the watermark; it may become visible later."""


class CorruptionError(StoreError):
    """Bytes of the store are damaged."""


class CorruptMessageError(CorruptionError):
    """A stored record fails its check. Facts: physical_offset, reason."""


class CorruptStoreError(CorruptionError):
    """A file of the store has a wrong size, name or content. Facts: path."""


class ReplicaDivergedError(CorruptionError):
    """A replica's log parts from its writer's below its confirm offset, or a copy's from its broker's.

    Facts: point, confirm_offset, epoch; of a copy: physical_offset.
    """


class ArchiveDiffersError(CorruptionError):
    """The contents of an archive and its store differ. Facts: topic, queue_id, differences (number)."""


class UnavailableError(StoreError):
    """The operation cannot be done now."""


class StoreClosedError(UnavailableError):
    """The store is shutting down or has stopped."""


class StoreLockedError(UnavailableError):
    """Another process holds the store. Facts: path, pid if known."""


class StoreContradictionError(UnavailableError):
    """A setting contradicts existing files. Facts: path, setting."""


class DiskFullError(UnavailableError):
    """The disk is full or nearly full; appends are refused until space is available."""


class FlushFailedError(UnavailableError):
    """An fsync failed. The process stops, and recovery reads the log from disk."""


class InFlightLimitError(UnavailableError):
    """Too many bytes are in flight. Facts: limit_bytes, retry_after_ms."""


class DiskFailedError(UnavailableError):
    """A write failed, although the disk is not full. Nothing of it was kept. Facts: errno."""


class WriterUnreachableError(UnavailableError):
    """No writer is configured, or it does not answer."""


class BrokerUnreachableError(UnavailableError):
    """A RocketMQ broker that is followed, or its name server, does not answer, or refuses. Facts: address."""


class QueryUnreachableError(UnavailableError):
    """The query service does not answer. Facts: url."""


class StaleEpochError(UnavailableError):
    """A writer's epoch is older than one that has begun; the outcome of its appends is unknown.

    Facts: epoch, newer_epoch.
    """


class NotLeaderError(UnavailableError):
    """This member of a replication group is not its writer. Nothing was stored.

    Facts: writer (address or ""), epoch.
    """


class InSyncReplicasNotEnoughError(UnavailableError):
    """Too few members of a replication group are in sync. Nothing was stored.

    Facts: in_sync, min_in_sync, retry_after_ms.
    """


class GroupStoreUnavailableError(UnavailableError):
    """The store of a replication group's state does not answer, or refuses. Facts: url."""


class DeadlineExceededError(UnavailableError):
    """The answer did not arrive in time; the outcome is unknown."""


class GroupFullError(UnavailableError):
    """The limit of members, or of groups with members, is reached. Facts: limit."""


class OffsetsFullError(UnavailableError):
    """The limit of stored group offsets is reached; only existing ones can be changed. Facts: limit."""


class StoreUnsafeError(UnavailableError):
    """Other users may change the store's folders, or a link leads out of them. Facts: path, fault."""


class StoreTooNewError(UnavailableError):
    """A newer major version wrote the store. Facts: path, format, known."""


class PlaintextRefusedError(UnavailableError):
    """A service without TLS would listen on an address that other machines can reach. Facts: address."""


class TlsFilesError(UnavailableError):
    """A certificate, key or CA file cannot be used. Facts: path."""


class TlsFailedError(UnavailableError):
    """Service and client disagree on TLS: on trust, on certificates, or on its use. Facts: address."""


class AccessFileError(UnavailableError):
    """The access file or its JWKS file cannot be used. Facts: path."""


class TokenFileError(UnavailableError):
    """The token file cannot be read or contains no token. Facts: path."""


class RateLimitedError(UnavailableError):
    """The caller exceeded its limit of requests or bytes per second. Facts: of (which), limit, retry_after_ms."""
