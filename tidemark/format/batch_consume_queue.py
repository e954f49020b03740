"""The 46-byte unit of a BatchConsumeQueue (docs/format.md §5): one unit per record, which holds many messages.

The queue offset of a unit is its `base_offset`, not its position.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNIT_FIELDS = (  # RocketMQ: BatchConsumeQueue.CQ_STORE_UNIT_SIZE
    # name               type          at  meaning
    ("physical_offset", ">i8"),  #      0  first byte of the record in the CommitLog
    ("message_size", ">i4"),  #         8  whole record, bytes
    ("tags_code", ">i8"),  #           12  of the wrapper's tags
    ("store_timestamp", ">i8"),  #     20  the record's
    ("base_offset", ">i8"),  #         28  queue offset of its first message
    ("batch_size", ">i2"),  #          36  messages in it, at least 1
    ("compacted_offset", ">i4"),  #    38  -1
    ("reserved", ">i4"),  #            42  0
)
UNIT = np.dtype(list(UNIT_FIELDS))
UNIT_SIZE = UNIT.itemsize
assert UNIT_SIZE == 46 and UNIT.fields is not None and UNIT.fields["reserved"][1] == 42

UnitArray = NDArray[np.void]


def encode_units(
    *, physical_offset: Any, message_size: Any, tags_code: Any, store_timestamp: Any, base_offset: Any, batch_size: Any
) -> bytes:
    """Encode one unit per row of equally long columns."""
    units = np.zeros(len(physical_offset), UNIT)
    units["physical_offset"] = physical_offset
    units["message_size"] = message_size
    units["tags_code"] = tags_code
    units["store_timestamp"] = store_timestamp
    units["base_offset"] = base_offset
    units["batch_size"] = batch_size
    units["compacted_offset"] = -1
    return units.tobytes()


def decode_units(data: bytes | memoryview) -> UnitArray:
    """Return the units of *data* as a view with dtype UNIT, without a partial unit at the end."""
    return np.frombuffer(data, UNIT, count=len(data) // UNIT_SIZE)


def is_live(units: UnitArray) -> NDArray[np.bool_]:
    """Return which units are valid, by the four-part test of docs/format.md §5."""
    live: NDArray[np.bool_] = (
        (units["physical_offset"] >= 0)
        & (units["message_size"] > 0)
        & (units["base_offset"] >= 0)
        & (units["batch_size"] > 0)
    )
    return live
