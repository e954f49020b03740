"""Field tables of the key index file (docs/format.md §6): its header and its entries."""

from __future__ import annotations

import numpy as np

HEADER = np.dtype(
    [  # RocketMQ: IndexHeader
        ("begin_timestamp", ">i8"),  #         0  store timestamp of the first entry
        ("end_timestamp", ">i8"),  #           8  of the last
        ("begin_physical_offset", ">i8"),  #  16
        ("end_physical_offset", ">i8"),  #    24
        ("hash_slot_count", ">i4"),  #        32  slots in use
        ("index_count", ">i4"),  #            36  number of the next entry; a stored value ≤ 0 counts as 1
    ]
)
ENTRY = np.dtype(
    [
        ("key_hash", ">i4"),  #           0
        ("physical_offset", ">i8"),  #    4
        ("time_difference", ">i4"),  #   12  seconds since the header's begin_timestamp
        ("previous_entry", ">i4"),  #    16  number of the next older entry of the slot; 0 = none
    ]
)
HEADER_SIZE, SLOT_SIZE, ENTRY_SIZE = HEADER.itemsize, 4, ENTRY.itemsize
assert HEADER_SIZE == 40 and ENTRY_SIZE == 20
