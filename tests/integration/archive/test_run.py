"""Archives of a real store by real Spark, read by programs that know nothing of it."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.integration.archive.conftest import RETRY, Case, fill
from tidemark.archive.folder import part_files
from tidemark.archive.manifest import EXPIRED, NOT_STORED, ArchivedFile, load_manifest
from tidemark.archive.progress import Progress, StepProgress
from tidemark.archive.verify import verify_archive
from tidemark.client import Consumer, TopicQueue
from tidemark.errors import (
    ArchiveDiffersError,
    CorruptMessageError,
    OffsetTooSmallError,
)
from tidemark.index.ledger import Ledger
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

QUEUES = [*(TopicQueue("orders", n) for n in range(3)), TopicQueue("batches", 0), TopicQueue(RETRY, 0)]
PAGE = Path(__file__).parents[3] / "docs" / "archive.md"
Place = tuple[str, int, int]


def archived(case: Case) -> dict[Place, dict[str, Any]]:
    """Return every row of data/ by its place, as pyarrow reads a Hive folder; each place must be there once."""
    partitioning = ds.partitioning(pa.schema([("topic", pa.string()), ("day", pa.string())]), flavor="hive")
    rows = ds.dataset(case.folder / "data", partitioning=partitioning).to_table().to_pylist()
    places = Counter((row["topic"], row["queue_id"], row["queue_offset"]) for row in rows)
    assert all(count == 1 for count in places.values())
    return {(row["topic"], row["queue_id"], row["queue_offset"]): row for row in rows}


def consumed(case: Case, *, below: int | None = None) -> dict[Place, Any]:
    """Return every message of the store by its place, as a consumer gets it."""
    found: dict[Place, Any] = {}
    with Consumer(queues=QUEUES, store=case.store.root) as consumer:
        while messages := consumer.poll(timeout_s=0.2):
            found |= {(one.topic, one.queue_id, one.queue_offset): one for one in messages}
    return {place: one for place, one in found.items() if below is None or one.physical_offset < below}


def damage(case: Case, physical_offset: int, at: int = 0) -> None:
    """Overwrite bytes of a record."""
    path = case.store.root / "commitlog" / f"{physical_offset - physical_offset % case.store.log_file_size:020d}"
    data = bytearray(path.read_bytes())
    data[physical_offset % case.store.log_file_size + at] ^= 0xFF
    path.write_bytes(data)


def test_the_archive_has_every_message_once_with_all_columns(case: Case) -> None:
    """This includes inner batches, compressed bodies, and escaped topic names; files are by topic and UTC day."""
    run = case.archive(all_records=True, file_bytes=8_000, row_group_bytes=1_000)
    rows, messages = archived(case), consumed(case)
    assert rows.keys() == messages.keys()
    for place, message in messages.items():
        row = rows[place]
        assert row["body"] == message.body
        assert (row["tag"], tuple(row["keys"])) == (message.tag, message.keys)
        assert dict(row["properties"]) == message.properties
        assert (row["message_id"], row["offset_msg_id"]) == (message.message_id, message.offset_msg_id)
        assert row["physical_offset"] == message.physical_offset
        assert round(row["store_timestamp"].timestamp() * 1000) == message.store_timestamp_ms
        assert round(row["born_timestamp"].timestamp() * 1000) == message.born_timestamp_ms
        assert row["day"] == f"{row['store_timestamp']:%Y-%m-%d}"
    assert len({row["day"] for row in rows.values()}) == 3
    assert (run.manifest.rows, run.manifest.physical_end) == (len(rows), case.store.end)
    assert verify_archive(case.folder).findings == []
    assert printed_by_the_page(case) == f"{sum(place[0] == 'orders' and place[2] >= 20 for place in messages)}\n"
    require_sorted_cut_and_prunable(case, [file for file in run.files if file.topic == "orders"])


def printed_by_the_page(case: Case) -> str:
    """Return the output of docs/archive.md's block for this archive."""
    [block] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block, {"archive": str(case.folder)})
    return printed.getvalue()


def require_sorted_cut_and_prunable(case: Case, files: list[ArchivedFile]) -> None:
    """Require files of about 8,000 bytes whose row groups have statistics of offsets and times."""
    assert len(files) > len({file.day for file in files})
    for file in files:
        with pq.ParquetFile(case.folder / file.path) as parquet:
            table, metadata = parquet.read(), parquet.metadata
        offsets = table["queue_offset"].to_pylist()
        places = list(zip(table["queue_id"].to_pylist(), offsets, strict=True))
        assert places == sorted(places)
        assert table.nbytes < 2 * 8_000
        at = 0
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
            told, inside = columns["queue_offset"].statistics, offsets[at : at + group.num_rows]
            assert (told.min, told.max) == (min(inside), max(inside))
            assert all(columns[name].statistics.has_min_max for name in ("physical_offset", "store_timestamp"))
            assert columns["body"].compression == "ZSTD"
            at += group.num_rows
    fragments = ds.dataset([str(case.folder / file.path) for file in files]).get_fragments()
    wanted = ds.field("queue_offset") >= max(file.max_queue_offset for file in files)
    groups = [(len(one.row_groups), len(one.subset(wanted).row_groups)) for one in fragments]
    assert 0 < sum(kept for _, kept in groups) < sum(whole for whole, _ in groups)


def test_a_second_run_adds_newer_messages(case: Case) -> None:
    """Each message comes once: first the sealed ones, then all, although the log has lost its head since."""
    first = case.archive()
    before = archived(case)
    sealed = case.store.end - case.store.end % case.store.log_file_size
    assert first.manifest.physical_end == sealed > 0
    assert before.keys() == consumed(case, below=sealed).keys()
    (case.store.root / "commitlog" / f"{0:020d}").unlink()
    fill(case.store, 60)
    case.store.topic("late")
    case.store.append("late", b"new topic")
    case.store.publish()
    second = case.archive(all_records=True)
    assert second.manifest.files[: len(first.manifest.files)] == first.manifest.files
    rows = archived(case)
    assert rows.keys() == before.keys() | consumed(case).keys() | {("late", 0, 0)}
    assert {place: rows[place] for place in before} == before
    assert verify_archive(case.folder).findings == []
    assert case.archive(all_records=True).files == []


@pytest.mark.exhaustive
def test_messages_that_expired_before_the_archive_are_reported(case: Case) -> None:
    """They fail a run, or are listed in the manifest."""
    case.archive()
    fill(case.store, 200)
    end = load_manifest(case.folder).physical_end
    lost_to = end + 2 * case.store.log_file_size
    lost = {place for place, one in consumed(case).items() if end <= one.physical_offset < lost_to}
    for start in range(0, lost_to, case.store.log_file_size):
        (case.store.root / "commitlog" / f"{start:020d}").unlink()
    with pytest.raises(OffsetTooSmallError, match="expired before they were archived"):
        case.archive()
    run = case.archive(fail_on_data_loss=False)
    named = {(one.topic, one.queue_id, n) for one in run.manifest.left_out for n in range(one.first, one.next)}
    assert (named, {one.reason for one in run.manifest.left_out}) == (lost, {EXPIRED})
    assert verify_archive(case.folder).findings == []
    assert case.archive().left_out == []


def test_damaged_records_fail_a_run_or_are_excluded_and_listed(case: Case) -> None:
    """A body, a whole inner batch, a missing record, and the first and the last record are damaged."""
    messages = consumed(case)
    batch = next(one for place, one in messages.items() if place[0] == "batches" and place[2] == 3)
    last = max(offset for topic, queue_id, offset in messages if (topic, queue_id) == ("orders", 1))
    damage(case, messages["orders", 0, 0].physical_offset, at=90)
    damage(case, messages["orders", 1, last].physical_offset, at=90)
    damage(case, batch.physical_offset, at=90)
    case.store.write_units("orders", 2, 4, b"\0" * 8 + b"\x7f\xff\xff\xff" + b"\0" * 8)
    paths = StorePaths(case.store.root)
    ledger = Ledger(paths.indexer, 0, DiskStorage())
    ledger.record(physical_offset=messages["orders", 2, 4].physical_offset, size=100, reason="MAGIC")
    ledger.record(physical_offset=1 << 40, size=100, reason="MAGIC")  # outside of the archive's range
    with pytest.raises(CorruptMessageError, match="BODY_CRC at queue offset"):
        case.archive(all_records=True)
    assert (load_manifest(case.folder).files, part_files(case.folder)) == ((), [])
    run = case.archive(all_records=True, fail_on_corruption=False)
    gone = messages.keys() - archived(case).keys()
    named = {(one.topic, one.queue_id, n): one for one in run.manifest.left_out for n in range(one.first, one.next)}
    in_batch = {place for place, one in messages.items() if one.physical_offset == batch.physical_offset}
    assert gone == named.keys() == in_batch | {("orders", 0, 0), ("orders", 1, last), ("orders", 2, 4)}
    assert named["orders", 0, 0].physical_offset == messages["orders", 0, 0].physical_offset
    assert {one.reason for one in run.manifest.left_out} == {"BODY_CRC", NOT_STORED}
    assert [one.reason for one in run.manifest.ledger] == ["MAGIC"]
    assert verify_archive(case.folder).findings == []


def stop_at(wanted: str) -> Progress:
    def on_progress(progress: StepProgress) -> None:
        if progress.step == wanted:
            raise KeyboardInterrupt

    return on_progress


@pytest.mark.exhaustive
@pytest.mark.parametrize("step", ["reading", "writing", "verifying"])
def test_a_stopped_run_does_not_change_the_archive(case: Case, step: str) -> None:
    """The next run archives each message once."""
    case.archive(topics=("batches",), all_records=True)
    before, manifest = archived(case), load_manifest(case.folder)
    with pytest.raises(KeyboardInterrupt):
        case.archive(on_progress=stop_at(step), all_records=True)
    assert (archived(case), load_manifest(case.folder)) == (before, manifest)
    assert verify_archive(case.folder).findings == []
    run = case.archive(all_records=True)
    assert run.removed == 0
    assert archived(case).keys() == consumed(case).keys()
    assert not (case.folder / "staging").exists()


def test_a_run_stopped_before_its_manifest_duplicates_no_message(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its verified files are in data/, but not in the manifest: the next run removes them and writes them again."""
    with monkeypatch.context() as patch:
        patch.setattr("tidemark.archive.run._extended", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            case.archive(all_records=True)
    left = part_files(case.folder)
    assert left
    assert {finding.reason for finding in verify_archive(case.folder).findings} == {"FILE_UNKNOWN"}
    assert case.archive(all_records=True).removed == len(left)
    assert archived(case).keys() == consumed(case).keys()
    assert verify_archive(case.folder).findings == []


RARER_CHANGES = ("row", "tag", "keys", "properties")


def rewrite(path: Path, change: str) -> None:
    """Replace it by another valid Parquet file."""
    table = pq.ParquetFile(path).read()
    if change == "row":
        table = table.slice(1)
    else:
        at = table.schema.get_field_index(change)
        values = table.column(change).to_pylist()
        other = {"body": b"other", "tag": None, "keys": ["k1"], "properties": [("x", "z")]}[change]
        table = table.set_column(
            at, table.schema.field(at), pa.array([other, *values[1:]], table.schema.field(at).type)
        )
    pq.write_table(table, path)


@pytest.mark.parametrize(
    "change", ["body", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in RARER_CHANGES)]
)
def test_files_that_differ_from_the_store_are_reported_before_publication(case: Case, change: str) -> None:
    """A row is missing, or one value of one row differs."""

    def tamper(progress: StepProgress) -> None:
        if progress.step == "verifying" and progress.total == 0:
            rewrite(next((case.folder / "staging").rglob("topic=orders/*/*.parquet")), change)

    with pytest.raises(ArchiveDiffersError, match="queue 0 of orders on 2023-11-1"):
        case.archive(on_progress=tamper, all_records=True, topics=("orders",))
    assert (load_manifest(case.folder).files, part_files(case.folder)) == ((), [])


def test_a_run_without_new_messages_does_not_start_spark(case: Case) -> None:
    """A run that finds nothing writes an empty archive, or keeps the existing one."""
    case.store.publish(0)
    empty = case.archive(all_records=True).manifest
    assert (empty.files, empty.queues, load_manifest(case.folder)) == ((), (), empty)
