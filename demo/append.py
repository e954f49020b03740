"""Step 1: send every flight as a message, and show the progress of the appends and of the index."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
from rich.progress import Progress, TaskID

from demo.flights import KEY, TAG
from demo.screen import CONSOLE, progress_bars
from tidemark.client import Producer, Query
from tidemark.client.producer.send_table import TableResult

QUEUES = 4
BATCH_SIZE = 1000
_POLL_S = 0.1
_INDEX_TIMEOUT_S = 120


def append_flights(
    producer: Producer, query: Query, table: pa.Table, topic: str, attributes: dict[str, str]
) -> TableResult:
    """Send *table* to a new *topic* and wait until all of it is visible."""
    producer.topics.create(topic, queues=QUEUES, attributes=attributes)
    start_offset = watermark(query)
    with progress_bars() as progress:
        sending = progress.add_task(f"append to {topic}", total=table.num_rows)
        indexing = progress.add_task("  index follows, MB", total=None, unit="MB")
        stop = threading.Event()
        follower = threading.Thread(target=_follow, args=(query, progress, indexing, start_offset, stop))
        follower.start()
        try:
            before = time.perf_counter()
            result = producer.send_table(
                table,
                topic,
                key=KEY,
                tag=TAG,
                batch_size=BATCH_SIZE,
                on_acknowledged=lambda count: progress.advance(sending, count),
            )
            appended_s = time.perf_counter() - before
            wait_until_visible(query, result.end_physical_offset)
            visible_s = time.perf_counter() - before
        finally:
            stop.set()
            follower.join()
    CONSOLE.print(
        f"{result.count:,} messages acknowledged in {appended_s:.2f} s ({result.count / appended_s:,.0f}/s), "
        f"visible after {visible_s:.2f} s"
    )
    return result


def watermark(query: Query) -> int:
    """Return the physical offset below which all messages are readable."""
    offset: int = query.watermark()["watermark"]["physical_offset"]
    return offset


def wait_until_visible(query: Query, physical_offset: int) -> None:
    """Block until the watermark reaches *physical_offset*. Raises TimeoutError after two minutes."""
    deadline = time.monotonic() + _INDEX_TIMEOUT_S
    while watermark(query) < physical_offset:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"the watermark is {watermark(query)} after {_INDEX_TIMEOUT_S} s, and has not reached {physical_offset}"
            )
        time.sleep(_POLL_S / 10)


def _follow(query: Query, progress: Progress, task: TaskID, start_offset: int, stop: threading.Event) -> None:
    last = False
    while not last:
        last = stop.wait(_POLL_S)
        answer = query.watermark()
        progress.update(
            task,
            completed=(answer["watermark"]["physical_offset"] - start_offset) // 1_000_000,
            total=(answer["committed_offset"] - start_offset) // 1_000_000,
        )
