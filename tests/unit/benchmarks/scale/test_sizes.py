"""Bytes of a store, calculated by hand from docs/format.md."""

from __future__ import annotations

from benchmarks.scale import sizes
from benchmarks.scale.workload import Workload

SINGLE = Workload(1e9, 100, keys=1, key_bytes=16, topic_bytes=8, batch=2)
BATCHED = Workload(1e9, 100, keys=1, key_bytes=16, topic_bytes=8, batch=2, batch_queues=True)
KEYS = 4 + 1 + 16 + 1  # name, separator, value, separator
UNIQ_KEY = 8 + 1 + 32 + 1


def test_the_size_of_a_record_includes_head_body_topic_and_keys() -> None:
    """A record has 91 bytes and its variable parts."""
    assert sizes.record_bytes(SINGLE) == 91 + 100 + 8 + KEYS + UNIQ_KEY


def test_a_batch_is_one_record_of_elements() -> None:
    """Each message has 22 bytes of its own; INNER_NUM has one digit, INNER_BASE ten."""
    elements = 2 * (22 + 100 + KEYS + UNIQ_KEY)
    own = (9 + 1 + 1 + 1) + (10 + 1 + 10 + 1) + UNIQ_KEY
    assert sizes.record_bytes(BATCHED) == 91 + elements + 8 + own
    assert sizes.log_bytes(BATCHED, 10) == 5 * sizes.record_bytes(BATCHED)


def test_units_and_entries_follow_records() -> None:
    """A message has 20 bytes and two keys; a batch has 46 bytes and one key."""
    assert (sizes.queue_bytes(SINGLE, 10), sizes.index_entries(SINGLE, 10)) == (200, 20)
    assert (sizes.queue_bytes(BATCHED, 10), sizes.index_entries(BATCHED, 10)) == (230, 5)


def test_a_new_file_is_counted_when_the_previous_one_is_full() -> None:
    """A file holds five units or four entries; an index file's entry 0 is unused."""
    files = sizes.Files(queue_file_bytes=100, index_slots=1, index_entries=5)
    assert sizes.queue_files(SINGLE, 20, queues=2, files=files) == 4
    assert sizes.queue_files(SINGLE, 22, queues=2, files=files) == 6
    assert [sizes.index_files(SINGLE, messages, files) for messages in (2, 3)] == [1, 2]
    assert sizes.index_bytes(SINGLE, 3, files) == 2 * (40 + 4 + 5 * 20)
