"""Messages of a queue, as a pull returns them."""

from __future__ import annotations

from tests.built_store import BuiltStore
from tidemark.read.pull import PulledPart, PullRequest, pull
from tidemark.read.store_reader import StoreReader


def part_of(built: BuiltStore, topic: str) -> PulledPart:
    """Return all messages of queue 0 of *topic*. Publishes the appended messages first."""
    built.publish()
    reader = StoreReader(built.root)
    queue = reader.queue(topic, 0)
    bounds = reader.bounds(queue, reader.watermark())
    (part,) = pull(queue, reader.log, bounds, PullRequest(0, 1000, 1 << 20)).parts
    return part
