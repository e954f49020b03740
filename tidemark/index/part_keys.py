"""The hashed keys of a walked part: the input of the key index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format import index_file
from tidemark.format.dispatch_request import RequestArray, U8Array


class PartKeys(NamedTuple):
    """Each key of a part, in the order of the log (docs/format.md §6)."""

    hashes: NDArray[np.int32]
    physical_offsets: NDArray[np.int64]
    store_timestamps: NDArray[np.int64]

    def at_or_above(self, physical_offset: int) -> PartKeys:
        """Return the keys of records at or above *physical_offset*."""
        kept = self.physical_offsets >= physical_offset
        return PartKeys(self.hashes[kept], self.physical_offsets[kept], self.store_timestamps[kept])


def joined(keys: Sequence[PartKeys]) -> PartKeys:
    """Concatenate the keys of consecutive parts, at least one."""
    return keys[0] if len(keys) == 1 else PartKeys(*map(np.concatenate, zip(*keys, strict=True)))


def hash_rows(buffer: U8Array, requests: RequestArray) -> PartKeys:
    """Hash the keys of *requests*. buffer: the bytes in which they were walked."""
    return PartKeys(*index_file.hash_keys(buffer, requests))
