"""The clients' knowledge at a point of a trace: sent batches, answers, and the writer's own flushed offset."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.builders import properties, wire_batch
from tidemark.v1 import commit_log_pb2 as pb

from .operations import Note, Operation, Write

SENT, ACKNOWLEDGED = "sent", "acknowledged"
TOPIC_CREATED, TOPIC_DELETING, TOPIC_DELETED = "topic created", "topic deleting", "topic deleted"
OFFSET_PUTTING, OFFSET_PUT = "offset putting", "offset put"
EXPIRING = "expiring"
_FLUSHED_AT = 8  # of the file `flushed`


class Sent(NamedTuple):
    """A client's batch. Its messages have its number in their bodies."""

    number: int
    topic: str
    messages: int = 1
    body_size: int = 40
    inner: bool = False

    def body(self, index: int) -> bytes:
        return b"%d:%d:" % (self.number, index) + bytes([97 + self.number % 26]) * self.body_size

    def request(self) -> pb.AppendBatchRequest:
        """Return the append request; a repetition is the same."""
        own = [
            {"UNIQ_KEY": f"u{self.number}-{i}", "KEYS": f"k{self.number} every", "note": "n" * (i % 3)}
            for i in range(self.messages)
        ]
        wire = wire_batch(
            *((self.body(i), properties({k: v for k, v in p.items() if v}), 7) for i, p in enumerate(own))
        )
        request = pb.AppendBatchRequest(
            topic=self.topic, queue_id=0, packed=wire, request_id=f"u{self.number}-0", born_timestamp_ms=1
        )
        if self.inner:
            request.properties["KEYS"] = f"k{self.number} every"
        return request


class Place(NamedTuple):
    """The place of a batch in an answer."""

    queue_offset: int
    physical_offset: int
    end_offset: int


@dataclass
class Promises:
    """All knowledge at one point of a trace."""

    sent: dict[int, Sent] = field(default_factory=dict)
    acknowledged: dict[int, Place] = field(default_factory=dict)
    before: dict[int, frozenset[int]] = field(default_factory=dict)  # acknowledged before that one was sent
    created: set[str] = field(default_factory=set)  # topics that must be there
    deleting: set[str] = field(default_factory=set)  # topics that may be there
    deleted: set[str] = field(default_factory=set)  # topics that must not be there
    offsets: dict[tuple[str, str, int], set[int]] = field(default_factory=dict)  # of groups: any of these
    expiring: bool = False  # retention may have removed the log's first files
    flushed: int = 0  # the writer has reported that the log is synced up to here

    def key(self) -> tuple[object, ...]:
        """Return a key that is equal for equal promises."""
        offsets = tuple((key, tuple(sorted(values))) for key, values in sorted(self.offsets.items()))
        topics = (frozenset(self.created), frozenset(self.deleting), frozenset(self.deleted))
        return (len(self.sent), tuple(sorted(self.acknowledged)), topics, offsets, self.expiring, self.flushed)

    def take(self, operation: Operation, flushed_files: Iterable[int]) -> None:
        """Apply the next operation of the trace. flushed_files: numbers that the file `flushed` has had."""
        if isinstance(operation, Write):
            if operation.file in flushed_files and operation.at == _FLUSHED_AT:
                (self.flushed,) = struct.unpack("<Q" if sys.byteorder == "little" else ">Q", operation.data)
        elif isinstance(operation, Note):
            self._take_note(operation)

    def _take_note(self, note: Note) -> None:
        about = note.about
        if note.what == SENT:
            assert isinstance(about, Sent)
            self.sent[about.number] = about
            self.before[about.number] = frozenset(self.acknowledged)
            if about.topic in self.deleted:  # it is created again with its next message
                self.deleted.discard(about.topic)
                self.deleting.add(about.topic)
        elif note.what == ACKNOWLEDGED:
            assert isinstance(about, tuple)
            self.acknowledged[about[0]] = Place(*about[1:])
        elif note.what == EXPIRING:
            self.expiring = True
        elif note.what == TOPIC_CREATED:
            self.created.add(str(about))
            self.deleted.discard(str(about))
            self.deleting.discard(str(about))
        elif note.what == TOPIC_DELETING:
            self.created.discard(str(about))
            self.deleting.add(str(about))
        elif note.what == TOPIC_DELETED:
            self.deleting.discard(str(about))
            self.deleted.add(str(about))
        else:
            assert isinstance(about, tuple)
            key, value = about[:3], about[3]
            self.offsets[key] = {value} if note.what == OFFSET_PUT else {*self.offsets.get(key, {-1}), value}
