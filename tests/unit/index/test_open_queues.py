"""Units that are made for many queues at once equal those of each queue's own builder."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidemark.format.dispatch_request import DISPATCH_REQUEST, Fault, RequestArray
from tidemark.index.build import ConsumeQueueBuilder
from tidemark.index.dispatch import QueueGroups, group_by_queue
from tidemark.index.open_queues import OpenQueues
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

QUEUES = 3
NO_BYTES = np.zeros(1, np.uint8)  # all topics are empty
STEPS = (1, 1, 1, 1, 1, 2, 0, -1)  # differences to the next queue offset: consecutive, a hole, a duplicate, a step back

records = st.tuples(st.integers(0, QUEUES - 1), st.sampled_from(STEPS), st.sampled_from([0, 0, 0, int(Fault.BODY_CRC)]))


def parts(drawn: list[list[tuple[int, int, int]]]) -> list[RequestArray]:
    """Return rows as a walk gives them, one part of the log at a time."""
    made, next_offsets, physical_offsets = [], [0] * QUEUES, itertools.count(1000, 500)
    for part in drawn:
        rows = np.zeros(len(part), DISPATCH_REQUEST)
        for row, (queue, step, fault) in zip(rows, part, strict=True):
            row["queue_id"], row["fault"] = queue, fault
            row["queue_offset"] = max(next_offsets[queue] + step - 1, 0)
            row["physical_offset"], row["message_size"] = next(physical_offsets), 200
            row["tags_code"] = row["physical_offset"] * 3
            next_offsets[queue] = int(row["queue_offset"]) + 1
        made.append(rows)
    return made


class Store:
    """Builders of all queues in a folder."""

    def __init__(self, folder: Path, *, at_once: bool) -> None:
        self.folder = folder
        self.open_queues = OpenQueues() if at_once else None
        self.builders: dict[int, ConsumeQueueBuilder] = {}

    def build(self, groups: QueueGroups) -> list[int]:
        left = list(range(len(groups))) if self.open_queues is None else self.open_queues.append(groups)
        for i in left:
            run = groups.run(i)
            if run.queue_id not in self.builders:
                files = MappedFileQueue(self.folder / str(run.queue_id), 200, DiskStorage())
                self.builders[run.queue_id] = ConsumeQueueBuilder(files, mark=0)
            self.builders[run.queue_id].build(run.requests)
            if self.open_queues is not None:
                self.open_queues.add(run.topic, run.queue_id, self.builders[run.queue_id])
        return left

    def outcome(self) -> tuple[dict[str, bytes], dict[int, set[int]]]:
        files = {str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.glob("*/*")}
        return files, {queue_id: builder.touched for queue_id, builder in self.builders.items()}


@given(st.lists(st.lists(records, max_size=12), max_size=5))
def test_open_queues_write_the_same_bytes_as_one_queue_at_a_time(drawn: list[list[tuple[int, int, int]]]) -> None:
    """The rows have holes, duplicates, restarts and damaged records, and cross the edges of files."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        stores = Store(Path(one), at_once=True), Store(Path(other), at_once=False)
        for rows in parts(drawn):
            for store in stores:
                store.build(group_by_queue(NO_BYTES, rows))
        assert stores[0].outcome() == stores[1].outcome()


def test_each_file_that_gets_units_is_noted_for_the_next_sync(tmp_path: Path) -> None:
    """Ten units fit into a file."""
    store = Store(tmp_path, at_once=True)
    for rows in parts([[(0, 1, 0)] * 8, [(0, 1, 0)], [(0, 1, 0)] * 25]):
        for builder in store.builders.values():
            builder.touched.clear()
        store.build(group_by_queue(NO_BYTES, rows))
    assert store.builders[0].touched == {0, 200, 400, 600}


def test_consecutive_rows_need_no_builder_of_their_own(tmp_path: Path) -> None:
    """This applies from the second part on; a damaged record or a hole needs its own builder."""
    store = Store(tmp_path, at_once=True)
    plain = [[(queue, 1, 0) for queue in (0, 1, 0, 2, 0)] for _ in range(3)]
    odd = [(0, 1, int(Fault.BODY_CRC)), (1, 2, 0), (2, 1, 0)]
    assert [store.build(group_by_queue(NO_BYTES, rows)) for rows in parts([*plain, odd])] == [[0, 1, 2], [], [], [0, 1]]
