"""Step 3: consume all messages as a group, and compare every message with its row of the table."""

from __future__ import annotations

import itertools
import time
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from demo.append import QUEUES
from demo.flights import KEY, TAG
from demo.screen import CONSOLE, progress_bars
from tidemark.client import Consumer, ReceivedMessage, TopicQueue
from tidemark.client.producer.send_table import TableResult
from tidemark.format.pack import I64Array

PAGE = 5000
PAGE_BYTES = 16 << 20
WAIT_S = 30.0  # for the next message
_SHOWN = 5  # differences that are printed


class Comparison(NamedTuple):
    """The result for one topic."""

    equal: int
    differences: list[str]


def compare_topic(url: str, table: pa.Table, topic: str, sent: TableResult) -> Comparison:
    """Check that each row comes once, at its acknowledged offset, with its body, key and tag, and no other message."""
    differences: list[str] = []
    equal = seen = 0
    before = time.perf_counter()
    rows = {TopicQueue(topic, queue_id): _rows_of(sent, queue_id) for queue_id in range(QUEUES)}
    following = dict.fromkeys(rows, 0)
    consumer = Consumer(topic, group=f"{topic}-demo", url=url, max_messages=PAGE, max_bytes=PAGE_BYTES)
    with consumer, progress_bars() as progress:
        task = progress.add_task(f"consume and compare {topic}", total=table.num_rows)
        while seen < table.num_rows and (messages := consumer.poll(WAIT_S)):
            seen += len(messages)
            for queue, of_queue in itertools.groupby(messages, key=attrgetter("queue")):
                run = list(of_queue)
                same, different = _compare_run(table, run, rows[queue], following[queue])
                following[queue] += len(run)
                equal += same
                differences += [f"{queue.topic} queue {queue.queue_id} {text}" for text in different]
                progress.advance(task, same)
        if seen < table.num_rows:
            differences.append(f"{topic} ends after {seen} messages")
        if consumer.poll(0) or any(consumer.lag().values()):
            differences.append(f"{topic} has more messages than were sent")
    seconds = time.perf_counter() - before
    CONSOLE.print(f"{equal:,} of {table.num_rows:,} equal in {seconds:.1f} s ({equal / seconds:,.0f}/s)")
    for text in differences[:_SHOWN]:
        CONSOLE.print(text, style="red")
    return Comparison(equal, differences)


def _rows_of(sent: TableResult, queue_id: int) -> I64Array:
    """Return the table's row at each queue offset."""
    mine = np.flatnonzero(sent.queue_ids == queue_id)
    rows = np.full(len(mine), -1, np.int64)
    rows[sent.queue_offsets[mine]] = mine
    return rows


def _compare_run(table: pa.Table, messages: list[ReceivedMessage], rows: I64Array, first: int) -> tuple[int, list[str]]:
    """Return the number of equal messages and the differences, for messages of one queue from offset *first*."""
    wanted = rows[first : first + len(messages)]
    if len(wanted) < len(messages):
        return 0, [f"has {len(messages) - len(wanted)} more messages than were sent"]
    equal = 0
    differences = []
    flights = table.take(wanted).to_pylist()
    for number, (message, flight) in enumerate(zip(messages, flights, strict=True)):
        is_equal = (
            message.queue_offset == first + number
            and message.json() == flight
            and message.keys == ((flight[KEY],) if flight[KEY] else ())
            and message.tag == flight[TAG]
        )
        if is_equal:
            equal += 1
        else:
            differences.append(f"offset {first + number} (row {wanted[number]}): {message} instead of {flight}")
    return equal, differences
