"""TracedMessages: the messages with a trace context among those that an epoch made visible.

A task only finds them, in bytes that it has already read, and reports them with its progress. The driver creates the
spans, because tasks are forked, end with their epoch, and may run on hosts that reach no collector.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import orjson

from tidemark.index.log_walk import LogPart
from tidemark.tracing.traced_records import traced_records


@dataclass(frozen=True)
class Indexed:
    """A message that became visible. began_ns, ended_ns: Unix time in ns of the build of its part of the log."""

    traceparent: str
    topic: str
    queue_id: int
    physical_offset: int  # of its record
    began_ns: int
    ended_ns: int


class TracedMessages:
    """The traced messages of one epoch. limit: the search stops after this many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[Indexed] = []

    def to_json(self) -> str:
        """Return the found messages as JSON for a row of progress; "" if there are none."""
        return orjson.dumps(self._found).decode() if self._found else ""

    def look(self, part: LogPart, began_ns: int) -> None:
        """Search *part*, which has been published."""
        left = self._limit - len(self._found)
        if left <= 0 or not len(part.requests):
            return
        now_ns, places = time.time_ns(), part.requests["physical_offset"] - part.base_offset
        for found in traced_records(part.buffer, places, part.requests, limit=left):
            row = part.requests[found.row]
            topic_at, topic_length = int(row["topic_at"]), int(row["topic_length"])
            indexed = Indexed(
                traceparent=found.traceparent,
                topic=bytes(part.buffer[topic_at : topic_at + topic_length]).decode("utf-8", "replace"),
                queue_id=int(row["queue_id"]),
                physical_offset=int(row["physical_offset"]),
                began_ns=began_ns,
                ended_ns=now_ns,
            )
            self._found.append(indexed)


def parse_indexed(to_json: str) -> list[Indexed]:
    """Parse the messages of a row of progress."""
    return [Indexed(**one) for one in orjson.loads(to_json)] if to_json else []
