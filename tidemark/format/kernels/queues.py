"""Grouping of rows by queue, in compiled loops. Twin: `tests.unit.format.test_queue_groups`."""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled


@compiled(inline="always")
def same_topic(buffer, row, other):  # type: ignore[no-untyped-def]
    """Return True if both rows have the same topic, byte for byte."""
    if row.topic_length != other.topic_length:
        return False
    at, other_at = row.topic_at, other.topic_at
    if at == other_at:
        return True
    for i in range(row.topic_length):
        if buffer[at + i] != buffer[other_at + i]:
            return False
    return True


@compiled(inline="always")
def _same_queue(buffer, row, other):  # type: ignore[no-untyped-def]
    return row.queue_id == other.queue_id and same_topic(buffer, row, other)


@compiled(inline="always")
def _slot_of(queue_hash, key, mask):  # type: ignore[no-untyped-def]
    """Return murmur3's 64-bit finaliser of the keyed hash, so that chosen names cannot fill one part of the table."""
    h = queue_hash ^ key
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64((h ^ (h >> np.uint64(33))) & mask)


@compiled
def group_rows(buffer, rows, key, without_flags, table, numbers, firsts):  # type: ignore[no-untyped-def]
    """Number the queues of *rows* in the order of their first row, and return how many there are.

    Equal hashes are only candidates; the topic's bytes and the queue id decide.

    key      uint64, secret, per process
    table    int32, a power of two, at least twice the rows; work space
    numbers  int32, per row: the number of its queue; -1 for a row with a bit of *without_flags* in sys_flag
    firsts   int32, per queue, at most one per row: its first row
    """
    mask = np.uint64(table.size - 1)
    table[:] = -1
    count = 0
    for i in range(rows.size):
        row = rows[i]
        if (row.sys_flag & without_flags) != 0:
            numbers[i] = -1
            continue
        if i > 0 and numbers[i - 1] >= 0 and _same_queue(buffer, row, rows[i - 1]):
            numbers[i] = numbers[i - 1]
            continue
        slot = _slot_of(row.topic_hash, key, mask)
        while True:
            number = table[slot]
            if number < 0:
                table[slot] = number = count
                firsts[count] = i
                count += 1
                break
            first = rows[firsts[number]]
            if row.topic_hash == first.topic_hash and _same_queue(buffer, row, first):
                break
            slot = (slot + 1) & (table.size - 1)
        numbers[i] = number
    return count


@compiled
def order_rows(numbers, edges, order):  # type: ignore[no-untyped-def]
    """Sort the rows with a queue by it, stably: fill *order*, and *edges* with the start of each queue in it.

    edges  int64, number of queues plus one, all 0
    """
    count = edges.size - 1
    for i in range(numbers.size):
        if numbers[i] >= 0:
            edges[numbers[i] + 1] += 1
    for number in range(count):
        edges[number + 1] += edges[number]
    for i in range(numbers.size):
        if numbers[i] >= 0:
            order[edges[numbers[i]]] = i
            edges[numbers[i]] += 1
    for number in range(count - 1, 0, -1):  # each edge is now that of the next queue
        edges[number] = edges[number - 1]
    if count > 0:
        edges[0] = 0


@compiled
def sort_by_queue(buffer, rows, key, without_flags, work, order, edges):  # type: ignore[no-untyped-def]
    """Run `group_rows` and `order_rows`, and return the number of queues.

    work   int32, two numbers per row and room for the table of `group_rows`
    edges  int64, one more than rows; only the first ones, up to the number of queues plus one, are set
    """
    count = rows.size
    numbers, firsts, table = work[:count], work[count : 2 * count], work[2 * count :]
    queues = group_rows(buffer, rows, key, without_flags, table, numbers, firsts)
    edges[: queues + 1] = 0
    order_rows(numbers, edges[: queues + 1], order)
    return queues
