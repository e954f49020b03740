"""Checksums of a member's log, noted while its bytes were those of other members, too: `checksums` in its folder.

Later they show which member is right about bytes that no record's checksum covers. The file has 8 bytes for each MiB of
the log, in its order: CRC-32 of the MiB · CRC-32 of its number and that checksum, so that zeros are not a checksum.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from isal.isal_zlib import crc32

STEP_BYTES = 1 << 20
_ENTRY = struct.Struct(">II")
_CHECKED = struct.Struct(">QI")


class KnownChecksums:
    """The file in *folder*, of which one thread at a time uses this object. What a power cut takes is noted again."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / "checksums", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def of(self, begin: int, end: int) -> int | None:
        """Return the noted CRC-32 of [begin, end); None if none is noted, or if it is not a whole step."""
        if not _is_step(begin, end):
            return None
        data = os.pread(self._descriptor, _ENTRY.size, begin // STEP_BYTES * _ENTRY.size)
        if len(data) < _ENTRY.size:
            return None
        crc, check = _ENTRY.unpack(data)
        return crc if check == _check(begin, crc) else None

    def note(self, begin: int, end: int, crc: int) -> None:
        """Note the CRC-32 of [begin, end), unless it is not a whole step."""
        if _is_step(begin, end):
            entry = _ENTRY.pack(crc, _check(begin, crc))
            os.pwrite(self._descriptor, entry, begin // STEP_BYTES * _ENTRY.size)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _is_step(begin: int, end: int) -> bool:
    return begin % STEP_BYTES == 0 and end - begin == STEP_BYTES


def _check(begin: int, crc: int) -> int:
    return crc32(_CHECKED.pack(begin // STEP_BYTES, crc))
