"""Batch: one append on its way through the writer; Appended: where it was stored.

Admission creates a batch on the event loop, the appender thread writes it, and the event loop answers it. The wire
bytes belong to the caller and are copied once, into records.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tidemark.errors import StoreError
from tidemark.format.dispatch_request import U8Array


class PutStatus(enum.IntEnum):
    """Outcome of a stored batch, with the numbers of the protocol's PutStatus."""

    PUT_OK = 1
    FLUSH_DISK_TIMEOUT = 2
    FLUSH_SLAVE_TIMEOUT = 3
    SLAVE_NOT_AVAILABLE = 4


class QueueKey(NamedTuple):
    """The key of a queue."""

    topic: str
    queue_id: int


class Wrapper(NamedTuple):
    """The fields that all records of a batch share."""

    born_host: bytes  # 8 or 20 bytes
    born_timestamp: int  # epoch milliseconds
    sys_flag: int = 0
    flag: int = 0
    reconsume_times: int = 0


class Delay(NamedTuple):
    """The delay of a message that is stored in SCHEDULE_TOPIC_XXXX until it is due. level: 1 to 18."""

    level: int
    topic: str  # where it is delivered
    queue_id: int


class Appended(NamedTuple):
    """The location of a stored batch. Ends are exclusive."""

    queue_id: int
    queue_offset: int  # of the first message
    message_count: int
    physical_offset: int  # of the first record
    end_offset: int
    store_timestamp: int
    physical_offsets: bytes  # of every record, 8 bytes big-endian each
    duplicate: bool = False


@dataclass(slots=True, eq=False)
class Batch:
    """An admitted append. Admission sets the first group of fields, the appender fills the second.

    size        bytes that count as in flight
    repeat_key  the values that a repeat shares with its original; a later try of the same message is not a repeat
    """

    key: QueueKey
    topic_field: U8Array  # length byte and name, as records carry it
    wire: U8Array  # checked wire batch
    count: int  # messages in it
    parts_size: int  # bytes of all bodies and properties
    wrapper: Wrapper
    unique_key: bytes  # identifies repeats; b"" for none
    first_extra: U8Array  # simple topics: appended to the first message's properties
    inner_properties: bytes | None = None  # BatchCQ topics: record properties without INNER_BASE; None: simple topic
    expected_next_offset: int | None = None
    waits_for_flush: bool = True  # in flush mode `sync`; False: answered after the write
    delay: Delay | None = None  # None: it is stored directly in its own topic
    is_redirected: bool = False  # stored in the dead letters, although the request names a retry topic
    may_share_key: bool = False  # another message may have the same key: other content is not a conflict
    answer: Callable[[Batch], None] = lambda _: None  # called once, on the event loop

    appended: Appended | None = None
    error: StoreError | None = None
    written_ns: int = 0  # time.time_ns() when it was written; 0: not written yet, though it may have its offsets
    answered: bool = False
    status: PutStatus = PutStatus.PUT_OK
    deadline_s: float = 0.0  # event loop time of a timeout

    size: int = field(init=False)
    repeat_key: tuple[str, str, bytes, int] = field(init=False)

    def __post_init__(self) -> None:
        self.size = self.wire.size + 1024
        self.repeat_key = self.key.topic, self.readers_topic, self.unique_key, self.wrapper.reconsume_times

    @property
    def is_late(self) -> bool:
        """True if it was answered before it was committed."""
        return self.status in (PutStatus.FLUSH_DISK_TIMEOUT, PutStatus.FLUSH_SLAVE_TIMEOUT)

    @property
    def readers_topic(self) -> str:
        """The topic in which readers find the messages: for a delayed message, its destination."""
        return self.key.topic if self.delay is None else self.delay.topic
