"""Grouping of rows by queue, compared with a dictionary, also for different queues of equal hash."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import row_of_records
from tests.plain_check import queue_hash
from tidemark.format import consume_queue
from tidemark.format.check import Checker
from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.index_file import hash_keys, key_hash
from tidemark.format.queue_groups import encode_groups, number_queues, order_by_queue, sort_by_queue, topic_of

COLLIDING = (b"orders-ODDlKib48", 0), (b"m-BJ5avg5qX", 54)  # queues whose 64-bit FNV-1a hashes are equal

queues = st.tuples(st.sampled_from([b"a", b"b", b"ab", b"ba", b"a" * 100, b"a" * 99 + b"b", b""]), st.integers(0, 3))


def walked(names: list[tuple[bytes, int]]) -> tuple[U8Array, RequestArray]:
    """Return rows of one record of each queue."""
    data = row_of_records(
        {"topic": topic, "queue_id": queue_id, "properties": b"KEYS\x01k\x02"} for topic, queue_id in names
    )
    buffer = np.frombuffer(data, np.uint8)
    return buffer, Checker().check(buffer, base_offset=0).requests.copy()


@given(st.lists(queues, max_size=60), st.sampled_from([0, 3, (1 << 64) - 1]))
def test_rows_are_numbered_by_topic_and_queue_id_for_any_hash(names: list[tuple[bytes, int]], kept_bits: int) -> None:
    buffer, rows = walked(names)
    rows["topic_hash"] &= np.uint64(kept_bits)
    expected: dict[tuple[bytes, int], int] = {}
    numbers = [expected.setdefault(name, len(expected)) for name in names]
    found = number_queues(buffer, rows)
    assert found.numbers.tolist() == numbers
    assert [(topic_of(buffer, row), int(row["queue_id"])) for row in rows[found.firsts]] == list(expected)
    order, edges = order_by_queue(found)
    assert [order[edges[i] : edges[i + 1]].tolist() for i in range(len(expected))] == [
        [place for place, number in enumerate(numbers) if number == i] for i in range(len(expected))
    ]


@given(st.lists(st.tuples(queues, st.sampled_from([0, 0, 1, 4, 8, 12])), max_size=60))
def test_sorted_rows_are_those_without_the_flags_by_queue(drawn: list[tuple[tuple[bytes, int], int]]) -> None:
    """The queues are in the order of their first row that is left."""
    buffer, rows = walked([name for name, _ in drawn])
    rows["sys_flag"] = [flag for _, flag in drawn]
    expected: dict[tuple[bytes, int], list[int]] = {}
    for i, (name, flag) in enumerate(drawn):
        if not flag & 4:
            expected.setdefault(name, []).append(i)
    order, edges = sort_by_queue(buffer, rows, without_flags=4)
    assert [order[edges[i] : edges[i + 1]].tolist() for i in range(len(edges) - 1)] == list(expected.values())


groups = st.lists(st.lists(st.tuples(st.sampled_from([1, 1, 1, 0, 2]), st.booleans()), min_size=1, max_size=4))


@given(groups, st.randoms(use_true_random=False))
def test_units_of_groups_are_those_of_their_rows(drawn: list[list[tuple[int, bool]]], random: Random) -> None:
    """A group is plain if its queue offsets ascend by one and no row has a fault."""
    _, rows = walked([(b"topic", 7)] * sum(map(len, drawn)))
    numbers = list(range(len(rows)))
    random.shuffle(numbers)
    order = np.array(numbers, np.int64)
    edges = np.cumsum([0, *map(len, drawn)], dtype=np.int64)
    rows["tags_code"] = rows["physical_offset"] * -3
    plain = []
    for i, group in enumerate(drawn):
        here = order[edges[i] : edges[i + 1]]
        rows["queue_offset"][here] = 100 * i + np.cumsum([step for step, _ in group])
        rows["fault"][here] = [int(is_damaged) for _, is_damaged in group]
        plain.append(all(step == 1 for step, _ in group[1:]) and not any(is_damaged for _, is_damaged in group))
    units, heads = encode_groups(rows, order, edges)
    columns = {name: rows[name][order] for name in ("physical_offset", "message_size", "tags_code")}
    assert units == consume_queue.encode_units(**columns)
    firsts = rows[order[edges[:-1]]]
    assert [tuple(head) for head in heads] == [
        (int(row["topic_at"]), int(row["topic_at"]) + 5, 7, int(row["queue_offset"]), 20 * begin, 20 * end, is_plain)
        for row, (begin, end), is_plain in zip(firsts, itertools.pairwise(edges.tolist()), plain, strict=True)
    ]


def test_queues_with_equal_hashes_are_distinguished() -> None:
    assert len({queue_hash(*queue) for queue in COLLIDING}) == 1
    buffer, rows = walked([*COLLIDING, *COLLIDING])
    assert number_queues(buffer, rows).numbers.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("kept_bits", [0, (1 << 64) - 1])
def test_keys_are_hashed_with_the_topic_of_their_own_record(kept_bits: int) -> None:
    names = [*COLLIDING, (COLLIDING[1][0], 3), *COLLIDING]
    buffer, rows = walked(names)
    rows["topic_hash"] &= np.uint64(kept_bits)
    assert hash_keys(buffer, rows)[0].tolist() == [key_hash(topic.decode(), "k") for topic, _ in names]
