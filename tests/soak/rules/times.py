"""Store times rise within a queue, and an offset by time is the boundary among the visible messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from tests.soak.facts import Facts, Queue
from tests.soak.history import Answer, Seen


def offset_by_time(facts: Facts) -> Iterator[str]:
    """Compare answers with the store times that were read at the end."""
    times: dict[Queue, list[int]] = {}
    for queue, messages in facts.final.items():
        times[queue] = [messages[offset].store_ms for offset in sorted(messages)]
        yield from _falling(queue, messages)
    for answer in facts.right:
        if answer.kind != "offset_by_time" or answer.queue_id is None:
            continue
        known = times.get(Queue(answer.topic, answer.queue_id), [])
        expected = _expected(answer, known)
        if expected is not None and expected != (answer.offset, answer.store_ms):
            yield (
                f"{answer.client} asked {answer.topic}/{answer.queue_id} for {answer.boundary} {answer.time_ms} among "
                f"[{answer.min_offset}, {answer.max_offset}) and got {(answer.offset, answer.store_ms)}, not {expected}"
            )


def _falling(queue: Queue, messages: dict[int, Seen]) -> Iterator[str]:
    for offset in sorted(messages):
        if offset + 1 in messages and messages[offset + 1].store_ms < messages[offset].store_ms:
            yield f"{queue}: {offset + 1} was stored at an earlier time than {offset}"


def _expected(answer: Answer, times: list[int]) -> tuple[int, int | None] | None:
    """Return (offset, its store time); None if the history does not determine it."""
    if answer.time_ms is None or answer.max_offset is None or answer.max_offset > len(times) or answer.min_offset:
        return None
    if answer.boundary == "lower":
        at = bisect_left(times, answer.time_ms, 0, answer.max_offset)
        return (at, times[at]) if at < answer.max_offset else (answer.max_offset, None)
    at = bisect_right(times, answer.time_ms, 0, answer.max_offset) - 1
    return (at, times[at]) if at >= 0 else (0, None)
