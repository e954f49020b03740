"""DispatchRequest: fields of one checked record for queue builders and readers (docs/format.md §13), as integers.

Positions (`*_at`) count from byte 0 of the checked buffer. Integers are native, because compiled loops fill the rows.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Fault(enum.IntEnum):
    """Fault of the bytes at a place. The names are the ledger's reasons."""

    NONE = 0
    MAGIC = 1  # no record and no blank record starts here
    LENGTH = 2  # lengths are negative, inconsistent, or exceed the file's end
    POSITION = 3  # the record has another physical offset: stale or misplaced bytes
    BODY_CRC = 4  # lengths are right, the body's CRC is wrong
    NUMBER = 5  # a property that must be a number is not a number
    PROPERTY_CRC = 6  # the record does not match the CRC at the end of its properties


class Outcome(enum.IntEnum):
    """Reason why a walk stopped."""

    END = 0  # the buffer ended at a record boundary
    PARTIAL = 1  # the buffer ended within a record
    BLANK = 2  # a blank record: the next file follows
    BAD = 3  # see the fault
    FULL = 4  # no more rows


REQUEST_FIELDS = (
    ("physical_offset", np.int64),
    ("queue_offset", np.int64),
    ("tags_code", np.int64),
    ("store_timestamp", np.int64),
    ("base_offset", np.int64),  # queue offset of the first message: INNER_BASE, otherwise queue_offset
    ("topic_hash", np.uint64),  # FNV-1a of topic and queue id; can be equal for different queues: see `queue_groups`
    ("message_size", np.int32),
    ("queue_id", np.int32),
    ("batch_size", np.int32),  # messages in the record: INNER_NUM, otherwise 1
    ("sys_flag", np.int32),
    ("body_at", np.int32),
    ("body_length", np.int32),
    ("topic_at", np.int32),
    ("topic_length", np.int32),
    ("properties_at", np.int32),
    ("properties_length", np.int32),
    ("tags_at", np.int32),
    ("tags_length", np.int32),
    ("keys_at", np.int32),
    ("keys_length", np.int32),
    ("unique_key_at", np.int32),
    ("unique_key_length", np.int32),
    ("multi_dispatch_at", np.int32),  # INNER_MULTI_DISPATCH: names of light queues
    ("multi_dispatch_length", np.int32),
    ("multi_offsets_at", np.int32),  # INNER_MULTI_QUEUE_OFFSET: a queue offset for each of them
    ("multi_offsets_length", np.int32),
    ("owned", np.int32),  # 0: another shard's record, included only for its light queues
    ("fault", np.int32),  # Fault.NONE, or a wrong CRC with Crc.MARKS
)
DISPATCH_REQUEST = np.dtype(list(REQUEST_FIELDS), align=True)


def fields_of(kind: np.dtype[np.void], *names: str) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that takes a row of *kind* as `tolist` makes it, and returns its fields *names*."""
    return itemgetter(*map((kind.names or ()).index, names))


RequestArray = NDArray[np.void]
U8Array = NDArray[np.uint8]
