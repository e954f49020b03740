"""A replica is killed, or loses its power, at any step of its writes: opened as a replica again, and promoted.

It follows a writer, is cut by the next one, and follows that.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from services.writer.batch.batch import Batch, QueueKey
from services.writer.replication.messages import Config, Welcome
from services.writer.replication.piece import Piece
from tests.crash.simulated_disk.boots import FIRST, NEXT, booted
from tests.crash.simulated_disk.explore import SEED, keep
from tests.crash.simulated_disk.promises import ACKNOWLEDGED
from tests.crash.simulated_disk.recorder import Recorder
from tests.crash.simulated_disk.states import Counts, CrashState, crash_states
from tests.crash.simulated_disk.tree import put_tree
from tests.unit.writer.batches import batch_of
from tests.unit.writer.log.log_tails import FILE_SIZE, Tail
from tests.unit.writer.replication.replicas import OpenedReplica, pieces_of
from tidemark.replication.epochs import Epoch
from tidemark.replication.group_state import GroupState
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.crash

COMMON = (("a" * 300,), ("b" * 900, "c" * 2_000), ("d" * 30_000,))
OF_THE_FIRST = (("e" * 500, "f"), ("g" * 31_000,), ("h" * 700,))  # the second of them is in the next file
OF_THE_SECOND = (("i" * 20_000,), ("j" * 33_000, "k"), ("l" * 20,))
QUICK = 80
STATES = int(os.environ.get("CRASH_STATES", "1000"))


class History(NamedTuple):
    """A writer's log. messages: their number below the end of each batch."""

    pieces: list[Piece]
    data: bytes
    messages: dict[int, int]

    def after(self, offset: int) -> list[Piece]:
        """Return the pieces that continue a log at *offset*."""
        rest = [piece.rest_from(max(offset, piece.start)) for piece in self.pieces if piece.end > offset]
        return [piece for piece in rest if piece is not None]


def history(folder: Path, batches: tuple[tuple[str, ...], ...]) -> History:
    folder.mkdir(parents=True)
    tail = Tail(folder)
    made: list[Batch] = [batch_of(*(body.encode() for body in bodies)) for bodies in batches]
    tail.append(*made)
    pieces = pieces_of(tail, made)
    end = tail.tail.position
    data = b"".join(tail.log.read(start, FILE_SIZE) for start in range(0, end, FILE_SIZE))[:end]
    messages, count = {0: 0}, 0
    for batch, piece in zip(made, pieces, strict=True):
        count += batch.count
        messages[piece.data_end] = messages[piece.end] = count
    tail.pages.close()
    tail.journal.close()
    tail.log.close()
    return History(pieces, data, messages)


class Case:
    """The two writers' logs, and what the replica hears of them."""

    def __init__(self, folder: Path) -> None:
        with booted(FIRST):  # equal times, so that the common part has equal bytes
            self.first = history(folder / "first", COMMON + OF_THE_FIRST)
            self.second = history(folder / "second", COMMON + OF_THE_SECOND)
        self.fork = self.first.pieces[len(COMMON) - 1].data_end
        assert self.first.data[: self.fork] == self.second.data[: self.fork]
        self.welcomes = (Welcome("g", 5, (Epoch(5, 0),)), Welcome("g", 6, (Epoch(5, 0), Epoch(6, self.fork))))

    def record(self, root: Path) -> Recorder:
        """Let a replica follow both, and record each change of its files and each acknowledgement."""
        root.mkdir(parents=True)
        recorder = Recorder(root)
        with booted(FIRST), recorder:
            replica = OpenedReplica(root, recorder.storage(DiskStorage())).replica

            def apply(received: list[Piece | Config], committed: int) -> None:
                acknowledged = replica.apply(received, committed).acknowledged
                recorder.note(ACKNOWLEDGED, (len(recorder.trace), 0, 0, acknowledged.end))
                replica.make_confirm_durable()

            one, other = self.first.pieces, self.second.pieces
            replica.follow(self.welcomes[0], len(self.first.data))
            apply([Config("topics.json", b'{"topicConfigTable":{}}', 1), *one[:2]], one[0].end)
            apply([one[2]], one[1].end)
            apply([*one[3:]], self.fork)
            recorder.note(ACKNOWLEDGED, (len(recorder.trace), 0, 0, self.fork))  # the rest was never committed
            replica.follow(self.welcomes[1], len(self.second.data))
            apply([*other[3:5]], other[3].end)
            apply([*other[5:]], other[5].end)
        return recorder

    def check(self, state: CrashState, root: Path) -> None:
        """Open *state* as a replica that is promoted, and as one that follows the second writer."""
        acknowledged = max(state.promises.acknowledged.items(), default=(0, None))[1]
        put_tree(state.tree, root)
        opened = OpenedReplica(root)
        member, data = opened.member, opened.bytes()
        of = self.first if data == self.first.data[: member.end] else self.second
        assert data == of.data[: member.end], "the log is a prefix of a writer's"
        assert member.end in of.messages, "whole batches"
        assert acknowledged is None or member.end >= acknowledged.end_offset, "acknowledged bytes are there"
        assert member.confirm <= member.end
        assert of is self.first or member.promised == 6, "no byte of an epoch before its promise"
        expected = tuple(epoch for epoch in self.welcomes[1].epochs if epoch.start < member.end)
        assert member.epochs[: len(expected)] == expected or of is self.first
        assert opened.store.recovered.offsets.next(QueueKey("orders", 0)) == of.messages[member.end]
        promoted = GroupState(1, 99, member.identity, frozenset({member.identity}), frozenset(), 1)
        assert member.promote(promoted).committed == member.confirm
        assert member.epoch_start == member.end
        opened.close()
        put_tree(state.tree, root)
        self._follow_on(root)

    def _follow_on(self, root: Path) -> None:
        opened = OpenedReplica(root)
        replica = opened.replica
        start = replica.follow(self.welcomes[1], len(self.second.data))
        replica.apply([*self.second.after(start)], len(self.second.data))
        assert opened.bytes() == self.second.data
        assert opened.member.confirm == len(self.second.data)
        assert opened.files.epochs() == self.welcomes[1].epochs
        opened.close()


def explore(folder: Path, *, most: int) -> Counts:
    """Check at least *most* states of a replica's life, if there are so many, chosen by the seed."""
    case, counts = Case(folder / "writers"), Counts()
    recorder = case.record(folder / "recorded")
    states = list(crash_states(recorder, counts, seed=SEED, samples=16))
    step = max(1, len(states) // most)
    for state in states[SEED % step :: step]:
        counts.opened += 1
        try:
            with booted(NEXT if state.power_cut else FIRST):
                case.check(state, folder / "state")
        except Exception as error:
            raise AssertionError(f"{state}: {error!r}; {keep(state.tree)}") from error
    return counts


def test_a_replica_keeps_what_it_acknowledged_after_a_crash(folder: Path) -> None:
    """The quick part checks a selection of states."""
    assert explore(folder, most=QUICK).opened >= QUICK // 2


@pytest.mark.exhaustive
def test_a_replica_keeps_what_it_acknowledged_after_a_crash_at_any_step(folder: Path) -> None:
    assert explore(folder, most=STATES).opened > QUICK


BROKEN = {
    "bytes are acknowledged before their sync": "tidemark.store.mapped_file_queue.MappedFileQueue.flush",
    "no promise before the bytes": "tidemark.replication.member_files.MemberFiles.promise",
    "no journal of the batches": "services.writer.replication.replica_log.ReplicaLog._write_journal",
}


SLOWEST = "no promise before the bytes"


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=pytest.mark.exhaustive) if rule == SLOWEST else rule for rule in BROKEN]
)
def test_a_broken_rule_is_found(rule: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is worth nothing if it does not notice these."""
    monkeypatch.setattr(BROKEN[rule], lambda *_: None)
    with pytest.raises(AssertionError):
        explore(folder, most=QUICK * 4)
