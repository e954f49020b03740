"""Single passes of the follower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.indexer.attach.broker_queues import BrokerQueues
from services.indexer.attach.follower import Follower
from tests.built_store import BuiltStore
from tests.waiting import until
from tidemark.index.ledger import read_ledger
from tidemark.read.file_run import FileRun
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


@pytest.fixture
def broker(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path / "store", marked=False)
    store.topic("orders")
    store.topic("packed", batch=True)
    store.append("orders", b"first")
    return store


@pytest.fixture
def paths(broker: BuiltStore, tmp_path: Path) -> StorePaths:
    return StorePaths(broker.root, state=tmp_path / "state")


def test_a_record_incomplete_during_the_walk_is_not_damage(
    broker: BuiltStore, paths: StorePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker finishes a record and its unit between the pass over the log and the pass over the queue."""
    follower = Follower(paths, DiskStorage())
    written = broker.append("orders", b"body")
    broker.write_log(written.physical_offset + 88, bytes(4))
    look_at_queues = BrokerQueues.first_without_unit

    def finish_first(self: BrokerQueues, *arguments: Any) -> int | None:
        broker.write_log(written.physical_offset + 88, b"body")
        return look_at_queues(self, *arguments)

    monkeypatch.setattr(BrokerQueues, "first_without_unit", finish_first)
    assert follower.poll()
    assert follower.position == broker.end
    assert read_ledger(paths.indexer) == []
    follower.close()


def test_a_record_longer_than_the_window_is_followed(tmp_path: Path) -> None:
    """The window grows for it and for the run of records after it."""
    broker = BuiltStore(tmp_path / "store", marked=False, log_file_size=1 << 20)
    broker.topic("orders")
    follower = Follower(StorePaths(broker.root, state=tmp_path / "state"), DiskStorage())
    for size in (300_000, 10, 200_000, 70_000, 20):
        broker.append("orders", bytes(size))
    until(lambda: follower.poll() and follower.position == broker.end, "all of it is followed")
    follower.close()


def test_the_greatest_end_is_the_end_of_a_valid_record(broker: BuiltStore, paths: StorePaths) -> None:
    """Both kinds of queues count; units of cut-off records, torn units and pre-blank heads do not."""
    queues = BrokerQueues(paths, FileRun(paths.commit_log))
    assert queues.greatest_end() == broker.end
    broker.append_batch("packed", [(b"a", {}, 0), (b"b", {}, 0)])
    assert queues.greatest_end() == broker.end
    end = broker.end
    broker.append("orders", b"kept")
    broker.append("orders", b"cut")
    kept = end + (broker.end - end) // 2
    broker.write_log(kept + 1, bytes(broker.end - kept))
    assert end < queues.greatest_end() < broker.end
    broker.write_units("orders", 0, 4, (1 << 40).to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(8))
    broker.write_units("orders", 0, 5, bytes(8) + (0x7FFFFFFF).to_bytes(4, "big") + bytes(8))
    assert end < queues.greatest_end() < broker.end


def test_each_follower_start_begins_a_term_at_the_brokers_end(broker: BuiltStore, paths: StorePaths) -> None:
    """This also holds if the queues end lower than before: the broker has lost data, or rebuilds its queues."""
    first = Follower(paths, DiskStorage())
    assert (first.term, first.position) == (1, broker.end)
    assert Marks.open_read_only(paths.marks).alive_ms > 0
    first.close()
    end = broker.end
    broker.append("orders", b"second")
    second = Follower(paths, DiskStorage())
    assert (second.term, second.position) == (2, broker.end)
    second.close()
    broker.write_units("orders", 0, 1, bytes(20))
    third = Follower(paths, DiskStorage())
    assert (third.term, third.position) == (3, end)
    third.close()
