"""A store read through its query service, while retention removes files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.client.received_message import TopicQueue
from tidemark.errors import OffsetTooSmallError
from tidemark.read.store_reader import StoreReader
from tidemark.spark.source import service_log
from tidemark.spark.source.service_log import ServiceLog

_QUEUE = TopicQueue("orders", 0)
_COUNT = 60


class Served:
    """A store of several log files, and a log of its service."""

    def __init__(self, store: BuiltStore, log: ServiceLog) -> None:
        self.store, self.log = store, log

    def delete(self, file: int) -> None:
        """Delete the log file with this number."""
        (self.store.root / "commitlog" / f"{file * self.store.log_file_size:020d}").unlink()

    def offsets(self, start: int = 0, end: int = _COUNT) -> list[int]:
        """Return the offsets of all read messages; none is damaged."""
        pages = list(self.log.pages(_QUEUE, start, end, tags=None))
        assert [page.damage for page in pages if page.damage] == []
        return [offset for page in pages for offset in page.messages.column("queue_offset").to_pylist()]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    store = BuiltStore(tmp_path / "store", log_file_size=2048)
    store.topic("orders")
    for number in range(_COUNT):
        store.append("orders", b"%d" % number)
    store.publish()
    with serve_query(store.root) as client:
        log = ServiceLog(str(client.base_url), timeout_s=10)
        yield Served(store, log)
        log.close()


def test_a_service_log_reads_exactly_the_range(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages may have any size."""
    for most in (32_768, 7, 1):
        monkeypatch.setattr(service_log, "_PAGE_MESSAGES", most)
        assert served.offsets() == list(range(_COUNT))
        assert served.offsets(20, 41) == list(range(20, 41))


def test_messages_deleted_by_retention_are_a_loss(served: Served) -> None:
    """The error has the offset where the queue begins now."""
    served.delete(0)
    first = served.log.bounds(_QUEUE).min_offset
    assert first > 0
    with pytest.raises(OffsetTooSmallError):
        served.offsets()
    assert served.offsets(first) == list(range(first, _COUNT))


def test_messages_deleted_while_a_page_is_built_are_a_loss(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that noticed it too late reports removed records: they are gone, not damaged."""
    served.offsets()  # opens the files
    real = StoreReader.log_min
    looks: list[int] = []

    def late(store: StoreReader) -> int:
        """Return the former minimum for two requests: the unchecked one, and the page asked for again."""
        looks.append(real.__get__(store))
        return 0 if len(looks) <= 4 else looks[-1]

    monkeypatch.setattr(StoreReader, "log_min", property(late))
    served.delete(0)
    with pytest.raises(
        OffsetTooSmallError, match=r"queue 0 of orders starts at offset [1-9]\d*: messages from 0 were deleted"
    ):
        served.offsets()


def test_a_file_that_is_missing_in_the_middle_is_damage(served: Served) -> None:
    """Retention removes only the oldest files."""
    served.delete(1)
    pages = list(served.log.pages(_QUEUE, 0, _COUNT, tags=None))
    damage = [line for page in pages for line in page.damage]
    read = sum(page.messages.num_rows for page in pages)
    assert 0 < len(damage) < _COUNT
    assert read + len(damage) == _COUNT
    assert damage[0].startswith("REMOVED at queue offset ")
