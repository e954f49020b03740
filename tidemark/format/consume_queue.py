"""The 20-byte unit of a ConsumeQueue (docs/format.md §4). Unit n of a queue is stored at byte 20 n."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNIT_FIELDS = (  # RocketMQ: ConsumeQueue.CQ_STORE_UNIT_SIZE
    # name              type          at  meaning
    ("physical_offset", ">i8"),  #     0  first byte of the record in the CommitLog
    ("message_size", ">i4"),  #        8  whole record, bytes; 0 = no unit here
    ("tags_code", ">i8"),  #          12  hash of the tags, or the delivery time, or an extension's address
)
UNIT = np.dtype(list(UNIT_FIELDS))
UNIT_SIZE = UNIT.itemsize
assert UNIT_SIZE == 20 and UNIT.fields is not None and UNIT.fields["tags_code"][1] == 12

PRE_BLANK_SIZE = 0x7FFFFFFF
PRE_BLANK_UNIT = (
    bytes(8) + PRE_BLANK_SIZE.to_bytes(4, "big") + bytes(8)
)  # fills a queue's head or a hole (docs/format.md §4)

UnitArray = NDArray[np.void]


def encode_units(*, physical_offset: Any, message_size: Any, tags_code: Any) -> bytes:
    """Encode one unit per row of equally long columns."""
    units = np.empty(len(physical_offset), UNIT)
    units["physical_offset"] = physical_offset
    units["message_size"] = message_size
    units["tags_code"] = tags_code
    return units.tobytes()


def decode_units(data: bytes | memoryview) -> UnitArray:
    """Return the units of *data* as a view with dtype UNIT, without a partial unit at the end."""
    return np.frombuffer(data, UNIT, count=len(data) // UNIT_SIZE)


def is_live(units: UnitArray) -> NDArray[np.bool_]:
    """Return which units point at a record: neither empty nor pre-blank."""
    sizes = units["message_size"]
    live: NDArray[np.bool_] = (units["physical_offset"] >= 0) & (sizes > 0) & (sizes != PRE_BLANK_SIZE)
    return live
