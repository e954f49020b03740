"""Workloads: clients' and operators' actions under the recorder. One step is one operation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from services.indexer.query.groups.consumer_offsets import ConsumerOffset, ConsumerOffsets
from tidemark.errors import StoreError
from tidemark.store.storage import DiskStorage, Storage

from .boots import FIRST, booted
from .in_process import InProcessWriter
from .pipeline import drain
from .promises import (
    ACKNOWLEDGED,
    EXPIRING,
    OFFSET_PUT,
    OFFSET_PUTTING,
    SENT,
    TOPIC_CREATED,
    TOPIC_DELETED,
    TOPIC_DELETING,
    Sent,
)
from .recorder import Recorder

SIMPLE, BATCHES = "t", "b"
BIG = 3900  # two such bodies fill a file
_LONG_AGO_HOURS = 1  # store times are simulated, and in the past
_TRIES = 50


class Session:
    """A store with its writer, its pipeline and its clients; every change of a file is recorded."""

    def __init__(self, recorder: Recorder, storage: Storage | None = None, **settings: Any) -> None:
        self._recorder = recorder
        self._settings = {"retention_hours": _LONG_AGO_HOURS, **settings}
        self._storage = recorder.storage(storage or DiskStorage())
        self._number = 0
        self._writer = self._open()

    def _open(self) -> InProcessWriter:
        return InProcessWriter(self._recorder.root, self._storage, **self._settings)

    # -- steps --------------------------------------------------------------------------------------------------------

    def append(self, *, count: int = 1, body_size: int = 40, topic: str = SIMPLE, batches: int = 1) -> None:
        """Send batches concurrently."""
        all_sent = [Sent(self._number + i, topic, count, body_size, inner=topic == BATCHES) for i in range(batches)]
        self._number += batches
        for sent in all_sent:
            self._recorder.note(SENT, sent)
        for sent, answer in zip(all_sent, self._writer.append(*(sent.request() for sent in all_sent)), strict=True):
            assert not isinstance(answer, StoreError), answer
            place = (sent.number, answer.queue_offset, answer.physical_offset, answer.end_physical_offset)
            self._recorder.note(ACKNOWLEDGED, place)

    def build(self) -> None:
        """Start the pipeline, let it catch up, and stop it."""
        drain(self._recorder.root, self._storage)

    def create_topic(self, name: str = "new", **fields: Any) -> None:
        self._writer.create_topic(name, **fields)
        self._recorder.note(TOPIC_CREATED, name)

    def delete_topic(self, name: str = SIMPLE) -> None:
        self._recorder.note(TOPIC_DELETING, name)
        self._writer.delete_topic(name)
        self._recorder.note(TOPIC_DELETED, name)

    def checkpoint(self) -> None:
        """Write the checkpoint, as the writer does every 100 ms."""
        self._writer.store.make_committed_durable()

    def restart(self) -> None:
        """Stop the writer in order, which saves its queue offsets, and start it."""
        self._writer.close()
        self._writer = self._open()

    def expire(self) -> None:
        """Run retention, as the writer does every ten seconds."""
        self._recorder.note(EXPIRING)
        for _ in range(_TRIES):  # it waits for the queue offsets to be saved
            if self._writer.expire():
                return
            time.sleep(0.002)

    def put_offset(self, offset: int = 1) -> None:
        """Commit a consumer's offset."""
        key = ("g", SIMPLE, 0)
        self._recorder.note(OFFSET_PUTTING, (*key, offset))
        offsets = ConsumerOffsets(self._writer.store.paths, self._storage)
        asyncio.run(offsets.put(ConsumerOffset(*key, offset)))
        offsets.close()
        self._recorder.note(OFFSET_PUT, (*key, offset))

    def end(self) -> None:
        """Stop the machine."""
        self._writer.abandon()


Step = Callable[[Session], None]
STEPS: dict[str, Step] = {
    "append": lambda session: session.append(),
    "append three": lambda session: session.append(count=3, body_size=1300),
    "append long": lambda session: session.append(count=30, body_size=10),
    "append inner": lambda session: session.append(topic=BATCHES, count=3),
    "append group": lambda session: session.append(count=2, batches=3, body_size=300),
    "roll": lambda session: session.append(count=2, body_size=BIG),
    "build": lambda session: session.build(),
    "create topic": lambda session: session.create_topic(),
    "delete topic": lambda session: session.delete_topic(),
    "checkpoint": lambda session: session.checkpoint(),
    "restart": lambda session: session.restart(),
    "expire": lambda session: session.expire(),
    "put offset": lambda session: session.put_offset(),
}


def record(root: Path, steps: Sequence[str], storage: Storage | None = None, **settings: Any) -> tuple[Recorder, int]:
    """Return the steps' recorder, and the number of the first operation of the steps themselves.

    Before them a store is created, with both kinds of topics and a first batch in each. Crashes in that are the same
    for
    every workload: see the workload without steps.
    """
    root.mkdir(parents=True)
    recorder = Recorder(root)
    with booted(FIRST), recorder:
        session = Session(recorder, storage, **settings)
        try:
            session.create_topic(SIMPLE)
            session.create_topic(BATCHES, attributes={"queue.type": "BatchCQ"})
            session.append(count=2)
            session.append(topic=BATCHES, count=2)
            session.checkpoint()
            first = len(recorder.trace)
            for step in steps:
                STEPS[step](session)
            end = len(recorder.trace)
        finally:
            session.end()
    del recorder.trace[end:]  # operations of the threads while they were stopped
    return recorder, first
