"""Traced messages among the records that a task has made visible."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from services.indexer.pipeline.traced_messages import Indexed, TracedMessages, parse_indexed
from tests.builders import properties, row_of_records
from tidemark.format.check import Checker
from tidemark.index.log_walk import LogPart, nothing_at

BASE = 5_000  # physical offset of each part's first byte


def trace(number: int, flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{number:032x}-{number:016x}-{flags}"}


def part_of(carried: Sequence[dict[str, str]], *, base_offset: int = BASE) -> LogPart:
    """Return a part whose records have these properties; record i is in queue i of topic `orders`."""
    fields = [
        {"topic": b"orders", "queue_id": number, "properties": properties(entries)}
        for number, entries in enumerate(carried)
    ]
    buffer = np.frombuffer(bytearray(row_of_records(fields, base_offset=base_offset)), np.uint8)
    rows = Checker().check(buffer, base_offset=base_offset).requests.copy()
    assert len(rows) == len(carried)
    return LogPart(buffer, base_offset, rows, [], base_offset + len(buffer))


def reported(messages: TracedMessages) -> list[Indexed]:
    """Return the messages as the driver receives them, in a row of progress."""
    return parse_indexed(messages.to_json())


def test_a_row_of_progress_names_the_place_and_the_times_of_each_traced_message() -> None:
    part = part_of([{"KEYS": "k"}, trace(7), trace(8, flags="00")])
    messages = TracedMessages(100)
    began_ns = time.time_ns()
    messages.look(part, began_ns)
    (found,) = reported(messages)
    assert found.traceparent == trace(7)["traceparent"]
    assert (found.topic, found.queue_id) == ("orders", 1)
    assert found.physical_offset == int(part.requests["physical_offset"][1]) > BASE
    assert found.began_ns == began_ns <= found.ended_ns <= time.time_ns()


def test_messages_of_several_parts_are_reported_in_their_order() -> None:
    """Positions in a part's buffer begin at the part's own base offset."""
    messages = TracedMessages(100)
    for number, base_offset in enumerate((BASE, 9_000_000_000)):
        messages.look(part_of([{}, trace(number + 1)], base_offset=base_offset), began_ns=1)
    first, second = reported(messages)
    assert (first.traceparent, second.traceparent) == (trace(1)["traceparent"], trace(2)["traceparent"])
    assert BASE < first.physical_offset < 9_000_000_000 < second.physical_offset


def test_an_epoch_reports_at_most_its_limit() -> None:
    """A task keeps them in memory, and the driver makes a span of each."""
    messages = TracedMessages(3)
    for _ in range(2):
        messages.look(part_of([trace(1), trace(2)]), began_ns=1)
    assert [found.traceparent for found in reported(messages)] == [trace(i)["traceparent"] for i in (1, 2, 1)]
    messages.look(part_of([trace(9)]), began_ns=1)
    assert len(reported(messages)) == 3


def test_only_records_of_the_tasks_own_rows_are_reported() -> None:
    """The buffer also holds records of other shards."""
    part = part_of([trace(1), trace(2), trace(3)])
    messages = TracedMessages(100)
    messages.look(part._replace(requests=part.requests[1:2]), began_ns=1)
    assert [found.queue_id for found in reported(messages)] == [1]


def test_an_epoch_without_traced_messages_reports_an_empty_text() -> None:
    messages = TracedMessages(100)
    messages.look(nothing_at(BASE), began_ns=1)
    messages.look(part_of([{}, {"KEYS": "k"}]), began_ns=1)
    assert messages.to_json() == ""
    assert reported(messages) == []
