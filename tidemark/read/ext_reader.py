"""ExtReader: resolves addresses in a consume queue extension to tags codes (docs/format.md §4), many at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.format.consume_queue_ext import UNIT, UNIT_SIZE, is_unit
from tidemark.format.tags import EXT_ADDRESS_LIMIT
from tidemark.read.file_run import FileRun, StrPath

_SIGN_BIT = np.int64((1 << 63) - 1)  # an address is the offset with the sign bit set

IntArray = NDArray[np.int64]


class ExtReader:
    """Reader of one queue's extension. Thread-safe."""

    def __init__(self, folder: StrPath) -> None:
        self._folder = folder
        self._files: FileRun | None = None  # opened at the first address: few queues have an extension

    def resolve(self, codes: IntArray) -> IntArray:
        """Return *codes* with each address replaced by its unit's tags code; unreadable units leave the address."""
        at = np.flatnonzero(codes <= EXT_ADDRESS_LIMIT)
        if not len(at):
            return codes
        if self._files is None:
            self._files = FileRun(self._folder)
        file_size = self._files.listing().file_size
        if file_size == 0:
            return codes
        codes = codes.copy()
        offsets = codes[at] & _SIGN_BIT
        for number in np.unique(offsets // file_size):
            here = np.flatnonzero(offsets // file_size == number)
            right, tags_codes = self._read(self._files, offsets[here])
            codes[at[here[right]]] = tags_codes[right]
        return codes

    def _read(self, files: FileRun, offsets: IntArray) -> tuple[NDArray[np.bool_], IntArray]:
        """Return, for units at *offsets* within one file, which can be read, and their tags codes."""
        first = int(offsets.min())
        data = np.frombuffer(files.read(first, int(offsets.max()) - first + UNIT_SIZE), np.uint8)
        there = offsets - first + UNIT_SIZE <= len(data)
        heads = np.zeros(len(offsets), UNIT)
        if there.any():
            bytes_of = (offsets[there] - first)[:, None] + np.arange(UNIT_SIZE)
            heads[there] = data[bytes_of].view(UNIT)[:, 0]
        return is_unit(heads), heads["tags_code"].astype(np.int64)
