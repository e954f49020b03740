"""Files that a task of the writing job makes of its rows, without Spark."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.unit.archive.written import DAY, DAY_MS, batch, row, written
from tidemark.archive.write import partition_folder

TOPIC = "%RETRY%billing|eu"


def test_each_part_is_written_to_its_own_file(tmp_path: Path) -> None:
    """The borders of record batches do not matter."""
    rows = [row("orders", n, part=n // 4) for n in range(10)]
    files = written(tmp_path, batch(rows[:3]), batch(rows[3:9]), batch(rows[9:]))
    assert [(file.rows, file.min_queue_offset, file.max_queue_offset) for file in files] == [
        (4, 0, 3),
        (4, 4, 7),
        (2, 8, 9),
    ]
    found = [pq.ParquetFile(tmp_path / file.path).read()["queue_offset"].to_pylist() for file in files]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_manifest_entry_describes_its_file(tmp_path: Path) -> None:
    """The entry has the file's bytes, and its edges in the units that their names state."""
    [file] = written(tmp_path, batch(row("orders", n, queue_id=n // 3) for n in range(5)))
    data = (tmp_path / file.path).read_bytes()
    assert (file.size, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (file.topic, file.day, file.rows) == ("orders", DAY, 5)
    assert (file.min_queue_id, file.max_queue_id) == (0, 1)
    assert (file.min_physical_offset, file.max_physical_offset) == (0, 1400)
    assert (file.min_store_timestamp_ms, file.max_store_timestamp_ms) == (DAY_MS, DAY_MS + 4)


def test_row_groups_are_cut_by_bytes(tmp_path: Path) -> None:
    """A row group is closed as soon as its bytes reach the limit."""
    batches = [batch(row("orders", n) for n in range(start, start + 10)) for start in range(0, 100, 10)]
    [file] = written(tmp_path, *batches, row_group_bytes=2 * batches[0].nbytes)
    metadata = pq.ParquetFile(tmp_path / file.path).metadata
    assert 4 <= metadata.num_row_groups <= 7
    assert metadata.metadata[b"tidemark.topic"] == b"orders"


@pytest.mark.parametrize("topic", [TOPIC, "2024", "a%2Fb", "null"])
def test_hive_partitioned_readers_find_topic_and_day(tmp_path: Path, topic: str) -> None:
    """Topic names may contain characters that have a meaning in a path."""
    written(tmp_path, batch([row(topic, 0)]))
    partitioning = ds.partitioning(pa.schema([("topic", pa.string()), ("day", pa.string())]), flavor="hive")
    table = ds.dataset(tmp_path, partitioning=partitioning).to_table()
    assert (table["topic"].to_pylist(), table["day"].to_pylist()) == ([topic], [DAY])


def test_special_characters_in_a_partition_folder_are_escaped(tmp_path: Path) -> None:
    """Percent signs are escaped as Hive does."""
    assert partition_folder(TOPIC, DAY) == f"topic=%25RETRY%25billing%7Ceu/day={DAY}"


def test_an_archive_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    """A task may get no rows."""
    assert written(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
