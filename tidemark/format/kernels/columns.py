"""Fields of messages as Arrow columns, and facts about all of them, in one pass over the records."""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import copy_bytes, is_same
from tidemark.format.kernels.integers import get_u8
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, SysFlag

(  # positions in the facts of `fill_columns`, initially 0
    BORN_HOSTS,  # 1: different hosts
    STORE_HOSTS,
    COMPRESSED,  # number of compressed bodies
    OTHER_PROPERTIES,  # number of messages with properties other than TAGS, KEYS and UNIQ_KEY
    ELEMENTS,  # number of elements of inner batches
    TAGS,  # bytes of all tags
    KEYS,
    UNIQUE_KEYS,
    BODIES,
    STORE_HOST_BYTES,
) = range(10)
N_FACTS = 10
_NOT_ASCII = np.uint64(0x8080808080808080)
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
def fill_numbers(buffer, messages, columns, facts):  # type: ignore[no-untyped-def]
    """Fill *columns* (`tidemark.format.message.NumberColumns`) and *facts* (int64, zeros) from MESSAGE rows.

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
        if message.inner > 0:
            facts[ELEMENTS] += 1
        if message.sys_flag & _COMPRESSED:
            facts[COMPRESSED] += 1
        if _own_length(message) < message.properties_length:
            facts[OTHER_PROPERTIES] += 1
        first = messages[0]
        size = message.born_host_size
        if size != first.born_host_size or not is_same(buffer, message.born_host_at, first.born_host_at, size):
            facts[BORN_HOSTS] = 1
        size = message.store_host_size
        facts[STORE_HOST_BYTES] += size
        if size != first.store_host_size or not is_same(buffer, message.store_host_at, first.store_host_at, size):
            facts[STORE_HOSTS] = 1
        facts[TAGS] += message.tags_length
        facts[KEYS] += message.keys_length
        facts[UNIQUE_KEYS] += message.unique_key_length
        facts[BODIES] += message.body_length


@compiled
def gather_field(buffer, messages, which, ends, out):  # type: ignore[no-untyped-def]
    """Copy the field *which* (TAGS, KEYS, UNIQUE_KEYS or BODIES) consecutively into *out*; ends as in `gather`.

    Returns the number of messages with the field, and a word that is 0 if all bytes of a text are ASCII.
    """
    to = np.int64(0)
    ends[0] = 0
    count = 0
    bits = np.uint64(0)
    for i in range(messages.size):
        message = messages[i]
        at, length = np.int64(message.body_at), np.int64(message.body_length)
        if which == TAGS:
            at, length = np.int64(message.tags_at), np.int64(message.tags_length)
        if which == KEYS:
            at, length = np.int64(message.keys_at), np.int64(message.keys_length)
        if which == UNIQUE_KEYS:
            at, length = np.int64(message.unique_key_at), np.int64(message.unique_key_length)
        if length > 0:
            copy_bytes(buffer, at, length, out, to)
            count += 1
            to += length
        ends[i + 1] = to
    at = to if which == BODIES else np.int64(0)
    while to - at >= 8:
        bits |= get_u8(out, at)
        at += 8
    for k in range(at, to):
        bits |= np.uint64(out[k])
    return count, bits & _NOT_ASCII
