"""Queue files that expire with the log."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.built_store import PRE_BLANK
from tidemark.index.expire import expire_queue
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name
from tidemark.store.storage import DiskStorage

UNITS_A_FILE = 5


class Queue:
    """A queue's folder, unit by unit: unit n points at physical offset 100 n."""

    def __init__(self, folder: Path, *, batch: bool, rest: int = 0) -> None:
        self.folder = folder
        self.batch = batch
        self.unit_size = 46 if batch else 20
        # a batch queue's file may end with bytes that are no unit
        self.file_size = UNITS_A_FILE * self.unit_size + rest
        folder.mkdir(parents=True)

    def unit(self, number: int) -> bytes:
        if self.batch:
            return struct.pack(">qiqqqhii", 100 * number, 99, 0, 1, 3 * number, 3, -1, 0)
        return struct.pack(">qiq", 100 * number, 99, 0)

    def put(self, file: int, *units: bytes) -> None:
        data = b"".join(units).ljust(self.file_size, b"\0")
        (self.folder / file_name(file * self.file_size)).write_bytes(data)

    def put_units(self, end: int, first: int = 0) -> None:
        """Write units *first* to *end*, file by file."""
        for file in range(first // UNITS_A_FILE, -(-end // UNITS_A_FILE)):
            numbers = range(file * UNITS_A_FILE, min(end, (file + 1) * UNITS_A_FILE))
            self.put(file, *(self.unit(number) for number in numbers))

    def expire(self, log_min: int) -> list[int]:
        """Expire, and return the numbers of the remaining files."""
        files = MappedFileQueue(self.folder, self.file_size, DiskStorage())
        deleted = expire_queue(files, log_min, batch=self.batch)
        left = sorted(int(path.name) for path in self.folder.iterdir())
        assert files.starts == left
        assert not {*deleted} & {*left}
        files.close()
        return [start // self.file_size for start in left]


@pytest.fixture(params=["simple", "batch", "batch with rest"])
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Queue:
    rest = 7 if request.param == "batch with rest" else 0
    return Queue(tmp_path / "queue", batch=request.param != "simple", rest=rest)


@pytest.mark.parametrize(
    ("log_min", "left"),
    [(0, [0, 1, 2]), (400, [0, 1, 2]), (401, [1, 2]), (900, [1, 2]), (901, [2]), (1_000_000, [2])],
)
def test_a_queue_file_expires_when_its_last_unit_points_below_the_minimum(
    queue: Queue, log_min: int, left: list[int]
) -> None:
    """The file with the queue's last unit is kept, because it preserves the numbering."""
    queue.put_units(13)
    assert queue.expire(log_min) == left
    assert queue.expire(log_min) == left


@pytest.mark.parametrize("end", [10, 15])
def test_the_last_queue_file_is_kept_even_if_full(queue: Queue, end: int) -> None:
    queue.put_units(end)
    assert queue.expire(1_000_000) == [end // UNITS_A_FILE - 1]


@pytest.mark.parametrize("length", ["full", "zero"])
def test_an_empty_last_file_does_not_count_as_the_last(queue: Queue, length: str) -> None:
    """Its builder was killed as it rolled: the previous file has the last unit."""
    queue.put_units(10)
    queue.put(2)
    if length == "zero":
        (queue.folder / file_name(2 * queue.file_size)).write_bytes(b"")
    left = queue.expire(1_000_000)
    assert left[0] == 1
    assert (queue.folder / file_name(queue.file_size)).read_bytes().startswith(queue.unit(5))


def test_a_single_queue_file_never_expires(queue: Queue) -> None:
    assert queue.expire(5) == []
    queue.put_units(3)
    assert queue.expire(1_000_000) == [0]


@pytest.mark.parametrize(("log_min", "left"), [(300, [0, 1]), (301, [1])])
def test_pre_blank_units_at_a_files_end_do_not_determine_its_expiry(
    tmp_path: Path, log_min: int, left: list[int]
) -> None:
    """They fill a hole and point at 0; the units before the hole are decisive."""
    queue = Queue(tmp_path / "queue", batch=False)
    queue.put(0, *(queue.unit(number) for number in range(4)), PRE_BLANK)
    queue.put(1, PRE_BLANK, queue.unit(6))
    assert queue.expire(log_min) == left


def test_a_queue_file_of_pre_blank_units_expires(tmp_path: Path) -> None:
    """It never held a message."""
    queue = Queue(tmp_path / "queue", batch=False)
    queue.put(0, *[PRE_BLANK] * UNITS_A_FILE)
    queue.put(1, PRE_BLANK, queue.unit(6))
    assert queue.expire(1) == [1]
