"""The unit of a consume queue extension (docs/format.md §4), for data that does not fit into a queue unit.

A queue unit whose tags code is at or below EXT_ADDRESS_LIMIT holds the address of such a unit: its offset in the
extension's files minus 2^63. END_MARK after a file's last unit means that the next file follows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.tags import EXT_ADDRESS_LIMIT

UNIT_FIELDS = (  # RocketMQ: ConsumeQueueExt.CqExtUnit
    # name              type          at  meaning
    ("size", ">i2"),  #                0  of the whole unit, bytes
    ("tags_code", ">i8"),  #           2  of the record
    ("store_timestamp", ">i8"),  #    10  the record's
    ("bitmap_size", ">i2"),  #        18  bytes of the bitmap, which follows
)
UNIT = np.dtype(list(UNIT_FIELDS))
UNIT_SIZE = UNIT.itemsize  # without a bitmap
assert UNIT_SIZE == 20 and UNIT.fields is not None and UNIT.fields["bitmap_size"][1] == 18

END_MARK = b"\xff\xff"  # in place of a size
END_MARK_ROOM = 4  # bytes kept free in every file
MIN_ADDRESS = -(1 << 63)


class ExtUnit(NamedTuple):
    """One unit. bitmap: consumer groups whose filters may match, b"" if unused."""

    tags_code: int
    store_timestamp: int
    bitmap: bytes = b""

    @property
    def size(self) -> int:
        """Size in bytes."""
        return UNIT_SIZE + len(self.bitmap)


def to_address(offset: int) -> int:
    """Return the tags code of a queue unit that refers to the extension unit at *offset*."""
    return offset + MIN_ADDRESS


def to_offset(address: int) -> int | None:
    """Return the offset of the unit of an address; None if the tags code is not an address."""
    return address - MIN_ADDRESS if address <= EXT_ADDRESS_LIMIT else None


def encode_unit(unit: ExtUnit) -> bytes:
    """Encode one unit."""
    head = np.array((unit.size, unit.tags_code, unit.store_timestamp, len(unit.bitmap)), UNIT)
    return head.tobytes() + unit.bitmap


def encode_units(*, tags_code: Any, store_timestamp: Any) -> bytes:
    """Encode one unit without bitmap per row of equally long columns."""
    units = np.zeros(len(tags_code), UNIT)
    units["size"] = UNIT_SIZE
    units["tags_code"] = tags_code
    units["store_timestamp"] = store_timestamp
    return units.tobytes()


def decode_unit(data: bytes | memoryview) -> ExtUnit | None:
    """Decode the unit at the start of *data*; None if there is no whole unit."""
    if len(data) < UNIT_SIZE:
        return None
    head = np.frombuffer(data, UNIT, count=1)
    size = int(head["size"][0])
    if not is_unit(head)[0] or size > len(data):
        return None
    return ExtUnit(int(head["tags_code"][0]), int(head["store_timestamp"][0]), bytes(data[UNIT_SIZE:size]))


def is_unit(heads: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return which *heads* (dtype UNIT) begin a unit: their two sizes agree."""
    right: NDArray[np.bool_] = heads["size"] == UNIT_SIZE + heads["bitmap_size"].astype(np.int32)
    return right & (heads["bitmap_size"] >= 0)
