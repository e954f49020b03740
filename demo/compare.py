"""Step 3: pull everything back, queue by queue, and hold every message against its row of the table."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from demo.append import QUEUES
from demo.flights import KEY, TAG
from demo.screen import CONSOLE, progress_bars
from tidemark.client import Query
from tidemark.client.send_table import TableResult
from tidemark.format.pack import I64Array

PAGE = 5000
PAGE_BYTES = 16 << 20
_SHOWN = 5  # differences told in full
Json = dict[str, Any]


class Comparison(NamedTuple):
    """What came back of one topic."""

    equal: int
    differences: list[str]


def compare_topic(query: Query, table: pa.Table, topic: str, sent: TableResult) -> Comparison:
    """Every row, once, at the place the producer was told, with its body, key and tag; and nothing else."""
    differences: list[str] = []
    equal = 0
    before = time.perf_counter()
    with progress_bars() as progress:
        task = progress.add_task(f"pull and compare {topic}", total=table.num_rows)
        for queue_id in range(QUEUES):
            rows = _rows_of(sent, queue_id)
            next_offset = 0
            while next_offset < len(rows):
                page = query.pull(
                    topic, queue_id, next_offset, max_messages=PAGE, max_bytes=PAGE_BYTES, body_encoding="utf8"
                )
                same, different = _compare_page(table, page["messages"], rows, next_offset)
                equal += same
                differences += [f"{topic} queue {queue_id} {text}" for text in different]
                if page["next_offset"] <= next_offset:
                    differences.append(f"{topic} queue {queue_id} ends at {next_offset}, not at {len(rows)}")
                    break
                next_offset = page["next_offset"]
                progress.advance(task, same)
            tail = query.pull(topic, queue_id, len(rows))
            if tail["messages"] or tail["max_offset"] != len(rows):
                differences.append(f"{topic} queue {queue_id} goes on to {tail['max_offset']}")
    seconds = time.perf_counter() - before
    CONSOLE.print(f"{equal:,} of {table.num_rows:,} equal in {seconds:.1f} s ({equal / seconds:,.0f}/s)")
    for text in differences[:_SHOWN]:
        CONSOLE.print(text, style="red")
    return Comparison(equal, differences)


def _rows_of(sent: TableResult, queue_id: int) -> I64Array:
    """The table's row at each queue offset."""
    mine = np.flatnonzero(sent.queue_ids == queue_id)
    rows = np.full(len(mine), -1, np.int64)
    rows[sent.queue_offsets[mine]] = mine
    return rows


def _compare_page(table: pa.Table, messages: list[Json], rows: I64Array, first: int) -> tuple[int, list[str]]:
    """(equal messages, differences) of one page that must begin at offset *first*."""
    wanted = rows[first : first + len(messages)]
    if len(wanted) < len(messages):
        return 0, [f"has {len(messages) - len(wanted)} messages more than were sent"]
    equal = 0
    differences = []
    flights = table.take(wanted).to_pylist()
    for number, (message, flight) in enumerate(zip(messages, flights, strict=True)):
        keys = [flight[KEY]] if flight[KEY] else []
        is_equal = (
            message["queue_offset"] == first + number
            and orjson.loads(message["body"]) == flight
            and message["keys"] == keys
            and message["tag"] == flight[TAG]
        )
        if is_equal:
            equal += 1
        else:
            differences.append(f"offset {first + number} (row {wanted[number]}): {message} instead of {flight}")
    return equal, differences
