"""One queue as readers see it: queue offsets ⇄ units, for both kinds of queues.

In a ConsumeQueue unit n is queue offset n. In a BatchConsumeQueue a unit holds the messages
[base_offset, base_offset + batch_size), and its number says nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.message import MessageArray
from tidemark.read.unit_run import UnitArray, UnitRun, VisibleUnits
from tidemark.read.watermark import Watermark

_LIGHT_QUEUE = "%LMQ%"  # its units point at records of other topics (spec 3.7)


class QueueBounds(NamedTuple):
    """What of a queue may be read: queue offsets min_offset ≤ n < max_offset, and the units that hold them."""

    min_offset: int
    max_offset: int
    units: VisibleUnits


class QueueReader:
    """Reads one queue."""

    def __init__(self, folder: Path, *, topic: str, queue_id: int, batch: bool) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.is_batch = batch
        self.run = UnitRun(folder, batch=batch)
        # what its records must say: b"" for anything
        self.record_topic = b"" if topic.startswith(_LIGHT_QUEUE) else topic.encode()

    def bounds(self, watermark: Watermark, *, log_min: int) -> QueueBounds:
        """The queue below *watermark*. Empty: 0 and 0."""
        units = self.run.visible(watermark, log_min=log_min)
        if not self.is_batch:
            return QueueBounds(units.first, units.end, units)
        if units.end == 0:
            return QueueBounds(0, 0, units)
        last = self.run.read(units.end - 1, 1)[0]
        max_offset = int(last["base_offset"]) + int(last["batch_size"])
        if units.first == units.end:
            return QueueBounds(max_offset, max_offset, units)
        return QueueBounds(int(self.run.read(units.first, 1)["base_offset"][0]), max_offset, units)

    def locate(self, queue_offset: int, units: VisibleUnits) -> int:
        """Number of the unit that holds *queue_offset*, or of the first one behind it where there is a gap."""
        if not self.is_batch:
            return queue_offset
        low, high = units
        while low < high:  # the first unit that ends above queue_offset
            middle = (low + high) // 2
            unit = self.run.read(middle, 1)[0]
            if int(unit["base_offset"]) + int(unit["batch_size"]) > queue_offset:
                high = middle
            else:
                low = middle + 1
        return low

    def first_offsets(self, number: int, units: UnitArray) -> NDArray[np.int64]:
        """Queue offset of the first message of each of *units*, which begin at *number*."""
        if self.is_batch:
            return units["base_offset"].astype(np.int64)
        return np.arange(number, number + len(units), dtype=np.int64)

    def number_messages(self, messages: MessageArray, firsts: NDArray[np.int64]) -> None:
        """Let messages of a light queue have its own queue offsets; *firsts*: of each record they were read from."""
        if not self.record_topic:
            messages["queue_offset"] = firsts[messages["record"]]

    def message_counts(self, units: UnitArray) -> NDArray[np.int64]:
        """Messages of each of *units*."""
        if self.is_batch:
            return units["batch_size"].astype(np.int64)
        return np.ones(len(units), np.int64)
