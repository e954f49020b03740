"""Numeric fields of messages as columns, and facts about all of them, in one compiled loop."""

from __future__ import annotations

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import is_same
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, SysFlag

(  # positions in the facts of `fill_columns`, initially 0
    BORN_HOSTS,  # 1: different hosts
    STORE_HOSTS,
    COMPRESSED,  # number of compressed bodies
    OTHER_PROPERTIES,  # number of messages with properties other than TAGS, KEYS and UNIQ_KEY
) = range(4)
N_FACTS = 4
_INNER, _COMPRESSED = int(INNER_BATCH_FLAGS), int(SysFlag.COMPRESSED)
_TAGS_OVERHEAD, _KEYS_OVERHEAD, _UNIQUE_OVERHEAD = (len(name) + 2 for name in ("TAGS", "KEYS", "UNIQ_KEY"))


@compiled
def _own_length(message):  # type: ignore[no-untyped-def]
    """Return the bytes of TAGS, KEYS and UNIQ_KEY in the properties, including the last separator."""
    total = 0
    if message.tags_length > 0:
        total += message.tags_length + _TAGS_OVERHEAD
    if message.keys_length > 0:
        total += message.keys_length + _KEYS_OVERHEAD
    if message.unique_key_length > 0:
        total += message.unique_key_length + _UNIQUE_OVERHEAD
    return total


@compiled
def fill_columns(buffer, messages, columns, facts):  # type: ignore[no-untyped-def]
    """Fill *columns* (of `tidemark.format.message`) and *facts* (int64, zeros) from MESSAGE rows.

    In elements of an inner batch, sys_flag is without the flags of the batch.
    """
    queue_offsets, physical_offsets, store_timestamps, born_timestamps, flags, sys_flags, reconsume, crcs = columns
    for i in range(messages.size):
        message = messages[i]
        queue_offsets[i] = message.queue_offset
        physical_offsets[i] = message.physical_offset
        store_timestamps[i] = message.store_timestamp
        born_timestamps[i] = message.born_timestamp
        flags[i] = message.flag
        sys_flags[i] = message.sys_flag & ~_INNER if message.inner > 0 else message.sys_flag
        reconsume[i] = message.reconsume_times
        crcs[i] = message.body_crc
        if message.sys_flag & _COMPRESSED:
            facts[COMPRESSED] += 1
        if _own_length(message) < message.properties_length:
            facts[OTHER_PROPERTIES] += 1
        first = messages[0]
        size = message.born_host_size
        if size != first.born_host_size or not is_same(buffer, message.born_host_at, first.born_host_at, size):
            facts[BORN_HOSTS] = 1
        size = message.store_host_size
        if size != first.store_host_size or not is_same(buffer, message.store_host_at, first.store_host_at, size):
            facts[STORE_HOSTS] = 1
