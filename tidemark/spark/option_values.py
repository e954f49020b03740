"""Parsers of option values in the notation of Kafka's connector: JSON by topic and queue, times, sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

EARLIEST, LATEST = -2, -1  # in JSON offsets
_TIME = re.compile(r"\s*(\d{1,12})\s*(ms|s|m|min|h|d|)\s*")
_SECONDS = {"": 0.001, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
ByQueue = Mapping[str, Mapping[int, int]]  # topic, queue id


class End(Enum):
    """An end of a queue."""

    EARLIEST = "earliest"
    LATEST = "latest"


def parse_offsets(text: str) -> End | ByQueue:
    """Parse `earliest`, `latest`, or {"topic": {"0": 23, "1": -2}}, where -2 is the earliest and -1 the latest."""
    name = text.strip().lower()
    if name in {end.value for end in End}:
        return End(name)
    offsets = parse_by_queue(text)
    if any(offset < EARLIEST for queues in offsets.values() for offset in queues.values()):
        raise ValueError("an offset must be 0 or more, -2 (earliest) or -1 (latest)")
    return offsets


def parse_by_queue(text: str) -> ByQueue:
    """Parse {"topic": {"0": 23}}: an integer per queue."""
    found = _json_object(text, '{"topic": {"0": 23}}')
    for topic, queues in found.items():
        if not isinstance(queues, dict) or not all(_is_whole(value) for value in queues.values()):
            raise ValueError(f'{topic}: expected an integer per queue, such as {{"0": 23}}')
    return {topic: {_queue_id(topic, name): value for name, value in queues.items()} for topic, queues in found.items()}


def parse_times(text: str) -> ByQueue:
    """Parse {"topic": {"0": 1767225600000}}: epoch milliseconds per queue."""
    times = parse_by_queue(text)
    if any(time < 0 for queues in times.values() for time in queues.values()):
        raise ValueError("a time must be epoch milliseconds, 0 or more")
    return times


def parse_assignment(text: str) -> Mapping[str, list[int]]:
    """Parse {"topic": [0, 1]}: queue ids per topic."""
    found = _json_object(text, '{"topic": [0, 1]}')
    for topic, queues in found.items():
        if not isinstance(queues, list) or not queues or not all(_is_whole(queue) and queue >= 0 for queue in queues):
            raise ValueError(f"{topic}: expected a list of queue ids, such as [0, 1]")
    return found


def parse_seconds(text: str) -> float:
    """Parse `15m`, `10s`, `500ms` or `1h` to seconds; a number without a unit is milliseconds."""
    match = _TIME.fullmatch(text.lower())
    if match is None:
        raise ValueError("expected a time such as 15m, 10s or 500ms")
    return int(match[1]) * _SECONDS[match[2]]


def _json_object(text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"is not JSON ({error}); expected for example {example}") from None
    if not isinstance(found, dict) or not found:
        raise ValueError(f"expected a JSON object such as {example}")
    return found


def _queue_id(topic: str, name: str) -> int:
    if not name.isdecimal():
        raise ValueError(f"{topic}: {name!r} is not a queue id")
    return int(name)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
