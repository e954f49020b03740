"""Positions in queues as the command line names them: earliest, latest, an offset, a time.

A plain number is a queue offset. Epoch milliseconds need their unit, `1795240089391ms`, so that neither is guessed.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from tidemark.cli.reading.store_times import TIME_HELP, parse_time
from tidemark.cli.terminal.service_addresses import topic_path

if TYPE_CHECKING:
    from tidemark.client import Query

METAVAR = "earliest|latest|now|OFFSET|TIME"
HELP = f"OFFSET is a number; {TIME_HELP}"


class PlaceKind(enum.Enum):
    """Kinds of positions."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"


@dataclass(frozen=True)
class StartPlace:
    """A position in each queue. value: the queue offset, or epoch milliseconds of a store time."""

    kind: PlaceKind
    value: int = 0

    @classmethod
    def parse(cls, text: str, *, option: str) -> StartPlace:
        """Parse the value of *option*. Raises a usage error for anything else."""
        if text in ("earliest", "latest"):
            return cls(PlaceKind(text))
        if re.fullmatch(r"[0-9]{1,18}", text):
            return cls(PlaceKind.OFFSET, int(text))
        return cls(PlaceKind.TIME, parse_time(text, option=option, others="earliest, latest, an OFFSET or "))


def require_one_queue(place: StartPlace, queues: list[dict[str, Any]], *, option: str) -> None:
    """Raise a usage error if *place* is an offset and there are several queues."""
    if place.kind is PlaceKind.OFFSET and len(queues) > 1:
        raise typer.BadParameter("an offset applies to a single queue: name it with --queue", param_hint=option)


def offset_of(service: Query, topic: str, queue: dict[str, Any], place: StartPlace) -> int:
    """Return the queue offset of *place*. queue: its id and bounds, from GET /v1/topics/{topic}."""
    match place.kind:
        case PlaceKind.EARLIEST:
            return int(queue["min_offset"])
        case PlaceKind.LATEST:
            return int(queue["max_offset"])
        case PlaceKind.OFFSET:
            return place.value
        case PlaceKind.TIME:
            return int(offset_at_time(service, topic, queue["queue_id"], place.value)["offset"])


def existing_offset_of(service: Query, topic: str, queue: dict[str, Any], place: StartPlace) -> int:
    """Return `offset_of`, or raise OffsetTooSmallError, OffsetOutOfRangeError if the queue does not have the offset."""
    from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError

    facts = {"topic": topic, **queue}
    if place.kind is PlaceKind.OFFSET and place.value < queue["min_offset"]:
        raise OffsetTooSmallError(f"offset {place.value} is below the queue's minimum, {queue['min_offset']}", **facts)
    if place.kind is PlaceKind.OFFSET and place.value > queue["max_offset"]:
        raise OffsetOutOfRangeError(f"offset {place.value} is beyond the queue's end, {queue['max_offset']}", **facts)
    return offset_of(service, topic, queue, place)


def offset_at_time(service: Query, topic: str, queue_id: int, epoch_ms: int) -> dict[str, Any]:
    """Return the query service's answer: a queue's first message stored at *epoch_ms* or later."""
    return service.get(f"{topic_path(topic)}/queues/{queue_id}/offset", time=epoch_ms)


def queues_of(service: Query, topic: str, wanted: list[int]) -> list[dict[str, Any]]:
    """Return id and bounds of the *wanted* queues of *topic*, or of all if *wanted* is empty.

    Raises QueueIllegalError for a queue that does not exist.
    """
    from tidemark.errors import QueueIllegalError

    queues: list[dict[str, Any]] = service.get(topic_path(topic))["queues"]
    known = {queue["queue_id"]: queue for queue in queues}
    for queue_id in wanted:
        if queue_id not in known:
            raise QueueIllegalError(f"topic {topic} has no queue {queue_id}", topic=topic, queue_id=queue_id)
    return [known[queue_id] for queue_id in sorted(set(wanted))] if wanted else queues
