"""Small stores with a last batch of each kind at each kind of position, and ways to damage its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash.simulated_disk.boots import FIRST, booted
from tests.crash.simulated_disk.in_process import InProcessWriter
from tests.crash.simulated_disk.operations import Note
from tests.crash.simulated_disk.promises import ACKNOWLEDGED, SENT, TOPIC_CREATED, Promises, Sent
from tests.crash.simulated_disk.tree import Tree, read_tree
from tidemark.errors import StoreError

SEGMENT_SIZE = 4096
SETTINGS: dict[str, Any] = {"commit_log_segment_size_bytes": SEGMENT_SIZE}
SIMPLE, BATCHES = "t", "b"
KINDS = {
    "single record": Sent(9, SIMPLE, 1, 20),
    "batch": Sent(9, SIMPLE, 3, 20),
    "inner batch": Sent(9, BATCHES, 3, 20, inner=True),
}
BEFORE = {
    "at the log's start": (),
    "in the middle": (Sent(0, SIMPLE), Sent(1, BATCHES, 2, inner=True)),
    "behind a roll": (Sent(0, SIMPLE, 1, 1500), Sent(1, SIMPLE, 1, 1500), Sent(2, BATCHES, 1, 530, inner=True)),
}


class Layout(NamedTuple):
    """A killed writer's store, completely written, and the position of its last batch."""

    tree: Tree
    promises: Promises  # the last batch is sent, the others are acknowledged
    start: int
    end: int
    place_before: int | None  # physical offset of its queue's previous record

    @property
    def file(self) -> str:
        """Return the log file of the last batch."""
        return f"commitlog/{self.start - self.start % SEGMENT_SIZE:020d}"

    def spoiled(self, at: int, data: bytes) -> Tree:
        """Return the store with other bytes from physical offset *at* on."""
        place = at % SEGMENT_SIZE
        content = self.tree.files[self.file]
        return Tree(
            {**self.tree.files, self.file: content[:place] + data + content[place + len(data) :]}, self.tree.folders
        )

    def bytes_at(self, at: int, end: int) -> bytes:
        """Return bytes of the last batch's file."""
        return self.tree.files[self.file][at % SEGMENT_SIZE :][: end - at]


def lay_out(root: Path, kind: str, place: str) -> Layout:
    """Write the store with the real writer, which is then killed."""
    promises = Promises()
    root.mkdir(parents=True)
    with booted(FIRST):
        writer = InProcessWriter(root, **SETTINGS)
        writer.create_topic(SIMPLE)
        writer.create_topic(BATCHES, attributes={"queue.type": "BatchCQ"})
        for topic in (SIMPLE, BATCHES):
            promises.take(Note(TOPIC_CREATED, topic), ())
        for sent in (*BEFORE[place], KINDS[kind]):
            (answer,) = writer.append(sent.request())
            assert not isinstance(answer, StoreError), answer
            promises.take(Note(SENT, sent), ())
            if sent.number != KINDS[kind].number:
                where = (sent.number, answer.queue_offset, answer.physical_offset, answer.end_physical_offset)
                promises.take(Note(ACKNOWLEDGED, where), ())
        writer.abandon()
    assert (place == "behind a roll") == (answer.physical_offset == SEGMENT_SIZE)
    earlier = [
        promises.acknowledged[sent.number].physical_offset for sent in BEFORE[place] if sent.topic == KINDS[kind].topic
    ]
    before = earlier[-1] if earlier else None
    start, end = answer.physical_offset, answer.end_physical_offset
    assert isinstance(start, int)
    assert isinstance(end, int)
    return Layout(read_tree(root), promises, start, end, before)


class Spoiling(NamedTuple):
    """One kind of damage at one position."""

    way: str
    at: int
    tree: Tree


def spoilings(layout: Layout) -> Iterator[Spoiling]:
    """For every byte of the last batch, yield a cut there, eight zeroed bytes, and one flipped bit.

    Damage that changes nothing is left out.
    """
    for at in range(layout.start, layout.end):
        rest = layout.end - at
        flipped = bytes([layout.bytes_at(at, at + 1)[0] ^ 1 << at % 8])
        for way, data in (("cut", bytes(rest)), ("zeroed", bytes(min(8, rest))), ("flipped", flipped)):
            if data != layout.bytes_at(at, at + len(data)):
                yield Spoiling(way, at, layout.spoiled(at, data))
