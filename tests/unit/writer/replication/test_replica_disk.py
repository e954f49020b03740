"""The files of a replica, over a store that it has opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from services.writer.batch.batch import QueueKey
from services.writer.log.queue_offsets import QueueOffsets, Snapshot, load_snapshot, save_snapshot
from services.writer.replication.messages import Config, Welcome
from tests.unit.writer.log.log_tails import Tail
from tests.unit.writer.replication.replicas import OpenedReplica, pieces_of, written
from tidemark.errors import DiskFullError, ReplicaDivergedError
from tidemark.replication.epochs import Epoch
from tidemark.replication.group_state import GroupState
from tidemark.replication.member_files import STATE
from tidemark.replication.stored_state import encode_state
from tidemark.store.originals.checked_copy import copy_path
from tidemark.store.originals.next_offsets import NextOffsets, encode_next_offsets

FIRST = Welcome("g", 5, (Epoch(5, 0),))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenedReplica]:
    made = OpenedReplica(tmp_path / "replica")
    yield made
    made.close()


def test_received_pieces_are_synced_and_shown_up_to_the_committed_end(tail: Tail, opened: OpenedReplica) -> None:
    one, other = pieces_of(tail, written(tail, 100, 200))
    assert opened.replica.follow(FIRST, one.end) == 0
    applied = opened.replica.apply([one, other], committed=one.end)
    assert (applied.acknowledged.end, applied.confirm) == (other.end, one.end)
    assert opened.store.checkpoint.committed_offset == one.end
    assert opened.replica.apply([], committed=1 << 40).confirm == other.end, "not more than it has"


def test_a_restart_shows_no_more_than_before(tail: Tail, opened: OpenedReplica, tmp_path: Path) -> None:
    """Bytes above the confirm offset may never be committed."""
    one, other = pieces_of(tail, written(tail, 100, 200))
    opened.replica.follow(FIRST, one.end)
    opened.replica.apply([one, other], committed=one.end)
    opened.close()
    again = OpenedReplica(tmp_path / "replica")
    assert (again.member.end, again.member.confirm, again.member.epochs) == (other.end, one.end, FIRST.epochs)
    assert again.member.promised == 5
    again.close()


def test_a_piece_that_cannot_be_written_is_asked_for_again(tail: Tail, opened: OpenedReplica) -> None:
    one, other = pieces_of(tail, written(tail, 100, 200))
    opened.replica.follow(FIRST, 0)
    opened.replica.apply([one], committed=0)
    opened.disk.refuses_data = True
    with pytest.raises(DiskFullError):
        opened.replica.apply([other], committed=0)
    opened.disk.refuses_data = False
    assert opened.replica.follow(FIRST, other.end) == one.end
    assert opened.replica.apply([other], committed=other.end).confirm == other.end


def test_a_cut_forgets_saved_queue_offsets(tail: Tail, opened: OpenedReplica) -> None:
    """They count records that are gone, and other records may come in their place."""
    one, other = pieces_of(tail, written(tail, 100, 200))
    opened.replica.follow(FIRST, 0)
    opened.replica.apply([one, other], committed=one.end)
    save_snapshot(opened.store.snapshot_path, Snapshot(other.end, 1, QueueOffsets()), opened.disk)
    assert opened.replica.follow(Welcome("g", 6, (Epoch(5, 0), Epoch(6, one.end))), one.end) == one.end
    assert load_snapshot(opened.store.snapshot_path) is None
    assert opened.member.end == one.end


@pytest.mark.parametrize("restarts", [False, True])
def test_an_empty_log_begins_where_the_writers_does(opened: OpenedReplica, tmp_path: Path, restarts: bool) -> None:
    """The writer's retention may delete more files before the first byte is copied, but after its queue offsets."""
    one, other = (number * opened.store.segments.size for number in (1, 3))
    assert opened.replica.follow(FIRST._replace(min_offset=one), other) == one
    numbered = encode_next_offsets(NextOffsets(one, 1, {QueueKey("orders", 0): 7}))
    opened.replica.apply([Config("queue_offsets", numbered, 1)], committed=0)
    if restarts:
        opened.close()
        opened = OpenedReplica(tmp_path / "replica")
    assert opened.replica.follow(FIRST._replace(min_offset=other), other) == other
    assert (opened.member.end, opened.member.confirm) == (other, other)
    opened.close()


def test_committed_bytes_are_not_cut(tail: Tail, opened: OpenedReplica) -> None:
    (one,) = pieces_of(tail, written(tail, 100))
    opened.replica.follow(FIRST, 0)
    opened.replica.apply([one], committed=one.end)
    with pytest.raises(ReplicaDivergedError):
        opened.replica.follow(Welcome("g", 6, (Epoch(6, 0),)), 0)
    assert opened.member.end == one.end


def test_an_epoch_is_saved_before_its_first_byte(tail: Tail, opened: OpenedReplica) -> None:
    one, other = pieces_of(tail, written(tail, 100, 200))
    epochs = (Epoch(5, 0), Epoch(6, one.end))
    opened.replica.follow(Welcome("g", 6, epochs), other.end)
    opened.replica.apply([one], committed=0)
    assert opened.files.epochs() == epochs[:1]
    opened.replica.apply([other], committed=0)
    assert opened.files.epochs() == epochs


def test_small_files_are_written_with_their_copies(opened: OpenedReplica) -> None:
    content = orjson.dumps({"topicConfigTable": {}, "dataVersion": {"counter": 3}})
    applied = opened.replica.apply([Config("topics.json", content, 1), Config("unknown", b"x", 2)], committed=0)
    assert applied.acknowledged.config_number == 2
    paths = opened.store.paths
    copy = copy_path(paths.topics)
    assert paths.topics.read_bytes() == content
    assert copy is not None
    assert copy.read_bytes().endswith(content)


def test_the_groups_state_does_not_go_back(opened: OpenedReplica) -> None:
    older, newer = (GroupState(revision, 5, "a.0", frozenset(), frozenset(), 2, "g") for revision in (3, 4))
    for state in (newer, older):
        opened.replica.apply([Config(STATE, encode_state(state), 1)], committed=0)
    assert opened.files.state() == newer


def test_the_writers_queue_offsets_are_saved_once_the_log_has_their_records(tail: Tail, opened: OpenedReplica) -> None:
    """Otherwise a promotion would read the whole log."""
    one, other = pieces_of(tail, written(tail, 100, 200))
    offsets = QueueOffsets()
    offsets.set(QueueKey("orders", 0), 2)
    table = encode_next_offsets(NextOffsets(other.end, 1, dict(offsets)))
    opened.replica.follow(FIRST, 0)
    opened.replica.apply([Config("queue_offsets", table, 1), one], committed=0)
    assert load_snapshot(opened.store.snapshot_path) is None
    opened.replica.apply([other], committed=0)
    assert load_snapshot(opened.store.snapshot_path) == Snapshot(other.end, 1, offsets)
