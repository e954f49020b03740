"""Messages of a queue, as a pull returns them."""

from __future__ import annotations

from pathlib import Path

from tests.built_store import BuiltStore
from tidemark.read.pull import PulledPart, PullRequest, pull
from tidemark.read.store_reader import StoreReader


def part_of(built: BuiltStore, topic: str) -> PulledPart:
    """Return all messages of queue 0 of *topic*. Publishes the appended messages first."""
    built.publish()
    return part_in(built.root, topic)


def part_in(root: Path, topic: str) -> PulledPart:
    """Return all visible messages of queue 0 of *topic* in the store at *root*."""
    reader = StoreReader(root)
    queue = reader.queue(topic, 0)
    bounds = reader.bounds(queue, reader.watermark())
    (part,) = pull(queue, reader.log, bounds, PullRequest(0, 1000, 1 << 20)).parts
    return part
