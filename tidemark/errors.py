"""Every exception of Tidemark, as one tree.

    StoreError
    ├── RejectedError                what the caller sent cannot be taken; nothing was written
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
    │   └── DeadlineMissingError
    ├── OffsetError                  no such place, now or ever
    │   ├── OffsetTooSmallError        ├── OffsetOutOfRangeError
    │   └── MessageNotFoundError       └── MessageNotYetVisibleError
    ├── CorruptionError              our bytes are not what they should be
    │   ├── CorruptMessageError
    │   ├── CorruptStoreError
    │   └── ArchiveDiffersError
    └── UnavailableError             not now
        ├── StoreClosedError           ├── StoreLockedError        ├── StoreContradictionError
        ├── DiskFullError              ├── FlushFailedError        ├── InFlightLimitError
        ├── DiskFailedError            ├── WriterUnreachableError  ├── DeadlineExceededError
        ├── GroupFullError             ├── QueryUnreachableError
        ├── StoreTooNewError           ├── StoreUnsafeError        ├── PlaintextRefusedError
        ├── TlsFilesError              ├── TlsFailedError
        ├── AccessFileError            ├── TokenFileError
        └── RateLimitedError           └── OffsetsFullError

A leaf carries its facts as keyword arguments, which become attributes and travel with the error over the wire.
`tidemark.status` tells each leaf's stable reason, gRPC code and HTTP status. This module imports nothing of ours.
"""

from __future__ import annotations

Fact = str | int | float | bool | None


class StoreError(Exception):
    """Any failure Tidemark names. *facts* are keyword arguments: physical_offset=, path=, limit=, ..."""

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
    """The caller's message, batch or argument cannot be taken. Nothing was written."""


class TopicIllegalError(RejectedError):
    """The topic's name is not allowed: characters, length, or reserved."""


class TopicNotFoundError(RejectedError):
    """No such topic, and none is created for this request."""


class TopicForbiddenError(RejectedError):
    """The topic exists but takes no messages from clients."""


class TopicExistsError(RejectedError):
    """A topic of this name but another shape exists."""


class TopicAttributeError(RejectedError):
    """A topic attribute is unknown, malformed or unchangeable."""


class QueueIllegalError(RejectedError):
    """The topic has no queue of this id."""


class MessageSizeExceededError(RejectedError):
    """A body, batch or record is larger than the limit."""


class PropertiesSizeExceededError(RejectedError):
    """A message's properties are longer than 32,767 bytes."""


class PropertiesIllegalError(RejectedError):
    """A property's name or value cannot be written, or contradicts the request."""


class BatchMalformedError(RejectedError):
    """Packed bytes are not a wire batch."""


class BatchEmptyError(RejectedError):
    """A batch without messages, or a message without a body."""


class BatchTransactionError(RejectedError):
    """A batch carries transaction bits."""


class BatchDelayError(RejectedError):
    """A batch or one of its messages asks for a delayed delivery."""


class BatchRetryTopicError(RejectedError):
    """A batch to a %RETRY% topic."""


class InnerBatchIllegalError(RejectedError):
    """An inner batch on a topic of single messages, or its properties contradict its flags."""


class RequestConflictError(RejectedError):
    """This request id was used before for another content."""


class NextOffsetMismatchError(RejectedError):
    """expected_next_offset is not the queue's next offset. Facts: expected, actual."""


class GroupActiveError(RejectedError):
    """The group has living members, and nobody else may set its offsets. Facts: group, members, generation."""


class GroupStrategyConflictError(RejectedError):
    """The group's living members share its queues by another strategy. Facts: group, strategy."""


class GenerationStaleError(RejectedError):
    """Offsets of somebody who does not hold these queues, or not any more. Facts: member_id, generation (of now)."""


class MemberFencedError(RejectedError):
    """No member of this group, or not any more: join again. Facts: member_id, generation (of now)."""


class ArgumentIllegalError(RejectedError):
    """An argument is missing, malformed or out of its range."""


class UnauthenticatedError(RejectedError):
    """Nobody knows who asks: no token or certificate, or one that is not good, or not any more."""


class ForbiddenError(RejectedError):
    """Who asks may not do this. Facts: principal, right."""


class ForkedProcessError(RejectedError):
    """A client was used in a process that was forked after it was made. Facts: made_in, process (both process ids)."""


class DeadlineMissingError(RejectedError):
    """The call has no deadline, and the service takes none without."""


class OffsetError(StoreError):
    """A place that does not exist."""


class OffsetTooSmallError(OffsetError):
    """Below the minimum: deleted by retention. Facts: min_offset, max_offset."""


class OffsetOutOfRangeError(OffsetError):
    """Above everything committed. Facts: min_offset, max_offset."""


class MessageNotFoundError(OffsetError):
    """No message has this id, place or key."""


class MessageNotYetVisibleError(OffsetError):
    """The place is committed or above the watermark; it may become visible."""


class CorruptionError(StoreError):
    """Bytes of the store are not what they should be."""


class CorruptMessageError(CorruptionError):
    """A stored record fails its check. Facts: physical_offset, reason."""


class CorruptStoreError(CorruptionError):
    """A file of the store has a wrong size, name or content. Facts: path."""


class ArchiveDiffersError(CorruptionError):
    """An archive does not hold what the store holds. Facts: topic, queue_id, differences (how many)."""


class UnavailableError(StoreError):
    """It cannot be done now."""


class StoreClosedError(UnavailableError):
    """The store is shutting down or has stopped."""


class StoreLockedError(UnavailableError):
    """Another process holds the store. Facts: path, pid where known."""


class StoreContradictionError(UnavailableError):
    """A setting contradicts the files that exist. Facts: path, setting."""


class DiskFullError(UnavailableError):
    """The disk is full, or nearly: appends are refused until space is back."""


class FlushFailedError(UnavailableError):
    """An fsync failed. The process stops; recovery reads the disk."""


class InFlightLimitError(UnavailableError):
    """Too many bytes in flight. Facts: limit_bytes, retry_after_ms."""


class DiskFailedError(UnavailableError):
    """The disk did not take a write, and is not full. Nothing of it was kept. Facts: errno."""


class WriterUnreachableError(UnavailableError):
    """No writer is configured or it does not answer."""


class QueryUnreachableError(UnavailableError):
    """The query service does not answer. Facts: url."""


class DeadlineExceededError(UnavailableError):
    """The answer did not come in time; the outcome is unknown."""


class GroupFullError(UnavailableError):
    """No more members, or no more groups with members, are taken. Facts: limit."""


class OffsetsFullError(UnavailableError):
    """No more offsets of groups are kept: only those on record can be moved. Facts: limit."""


class StoreUnsafeError(UnavailableError):
    """Others may change the store's folders, or a link leads out of them. Facts: path, fault."""


class StoreTooNewError(UnavailableError):
    """A newer major version has written the store. Facts: path, format, known."""


class PlaintextRefusedError(UnavailableError):
    """A service would listen on an address that others reach, without TLS. Facts: address."""


class TlsFilesError(UnavailableError):
    """A certificate, its key or a list of CAs cannot be used. Facts: path."""


class TlsFailedError(UnavailableError):
    """Service and client do not agree on TLS: on trust, certificates, or whether to speak it. Facts: address."""


class AccessFileError(UnavailableError):
    """The file that says who may do what cannot be used, or its key set. Facts: path."""


class TokenFileError(UnavailableError):
    """The file of the token to show cannot be read, or holds none. Facts: path."""


class RateLimitedError(UnavailableError):
    """A caller's requests or bytes a second are more than it may. Facts: of (which), limit, retry_after_ms."""
