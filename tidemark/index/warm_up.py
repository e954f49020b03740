"""Loads every compiled loop that indexing needs, so that no message waits for it.

The first call on a machine compiles a loop, which takes seconds; later it is loaded from the cache on disk in a tenth
of a second. Spark's daemon runs this before it forks workers.
"""

from __future__ import annotations

import numpy as np

from tidemark.format import index_file
from tidemark.format.check import Checker, Crc, find_next_record, shard_of
from tidemark.format.queue_groups import encode_groups, number_queues, order_by_queue, sort_by_queue
from tidemark.format.record import Record, encode_record
from tidemark.format.unique_keys import hash_unique_keys


def warm_up() -> None:
    """Call every loop once, with the array types that the pipeline and recovery use."""
    record = encode_record(
        Record(topic=b"warm", body=b"up", properties=b"UNIQ_KEY\x01u\x02KEYS\x01a b\x02TAGS\x01t\x02")
    )
    buffer = np.frombuffer(bytearray(record), np.uint8)
    for checker in (Checker(crc=Crc.MARKS, shards=2), Checker(crc=Crc.STOPS)):
        requests = checker.check(buffer, base_offset=0).requests
    find_next_record(buffer, base_offset=0)
    shard_of(b"warm", 0, 2)
    order_by_queue(number_queues(buffer, requests))
    encode_groups(requests, *sort_by_queue(buffer, requests, without_flags=0))
    hash_unique_keys(buffer, requests)
    hashes, physical_offsets, store_timestamps = index_file.hash_keys(buffer, requests)
    slots = np.zeros(40, np.uint8)
    slots.flags.writeable = False  # as those of a mapped file
    new = index_file.make_entries(
        index_file.Header(),
        slots,
        hashes=hashes,
        physical_offsets=physical_offsets,
        store_timestamps=store_timestamps,
    )
    index_file.slot_stretches(slots, new.slot_numbers, new.slot_values, 0)
