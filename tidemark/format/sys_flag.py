"""SYSFLAG: bits of a record that determine how it is read (docs/format.md §2)."""

from __future__ import annotations

import enum


class SysFlag(enum.IntFlag):
    """Bits of a record's sys_flag."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    TRANSACTION_PREPARED = 0x4
    TRANSACTION_COMMIT = 0x8
    TRANSACTION_ROLLBACK = 0xC  # both bits: also the mask
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80
    COMPRESSION_TYPE = 0x700  # mask


TRANSACTION_MASK = int(SysFlag.TRANSACTION_ROLLBACK)
INNER_BATCH_FLAGS = int(SysFlag.NEED_UNWRAP | SysFlag.INNER_BATCH)
LZ4, ZSTD, ZLIB = 0x100, 0x200, 0x300  # values of COMPRESSION_TYPE
UNTYPED = 0x000  # messages of old clients: zlib
