"""Recovery over logs that were cut, torn or damaged at a chosen place."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from services.writer.batch.batch import QueueKey
from services.writer.log.recovery import Recovered, recover
from services.writer.log.segments import Segments
from tests.builders import properties, record_bytes, write_log
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.crash

FILE_SIZE = 8192
STORAGE = DiskStorage()


class Log(NamedTuple):
    paths: StorePaths
    places: list[int]
    ends: list[int]

    @property
    def end(self) -> int:
        return self.ends[-1]


def make_log(root: Path, count: int, *, body_size: int = 300) -> Log:
    """Write *count* records over two queues of topic T, and files of 8 KiB."""
    fields: list[dict[str, Any]] = [
        {
            "topic": b"T",
            "body": b"%d:" % i + bytes([65 + i % 26]) * body_size,
            "properties": b"a\x01b\x02",
            "queue_id": i % 2,
            "queue_offset": i // 2,
        }
        for i in range(count)
    ]
    placed = write_log(root / "commitlog", FILE_SIZE, fields)
    return Log(StorePaths(root), [p.physical_offset for p in placed], [p.physical_offset + len(p.data) for p in placed])


def confirm(paths: StorePaths, offset: int) -> None:
    """Write a checkpoint with this offset to the disk."""
    checkpoint = Checkpoint.open_to_write(paths.checkpoint, STORAGE)
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, offset)
    checkpoint.flush()
    checkpoint.close()


def run(paths: StorePaths) -> Recovered:
    """Run recovery as a writer does at its start."""
    segments = Segments(MappedFileQueue(paths.commit_log, FILE_SIZE, STORAGE))
    try:
        return recover(paths, segments, rebuild_bytes=1 << 20)
    finally:
        segments.log.close()


def content(paths: StorePaths) -> bytes:
    """Return all files, concatenated."""
    return b"".join(path.read_bytes() for path in sorted(paths.commit_log.iterdir()))


def patch(paths: StorePaths, offset: int, data: bytes) -> None:
    """Overwrite bytes of the log."""
    path = paths.commit_log / f"{offset - offset % FILE_SIZE:020d}"
    with path.open("r+b") as file:
        file.seek(offset % FILE_SIZE)
        file.write(data)


def test_a_whole_log_is_recovered_to_its_end(tmp_path: Path) -> None:
    """There are several files: the end, the queues' next offsets and the youngest time are right; no byte changes."""
    log = make_log(tmp_path, 60)
    before = content(log.paths)
    recovered = run(log.paths)
    assert len(list(log.paths.commit_log.iterdir())) == 3
    assert (recovered.end, recovered.damages) == (log.end, [])
    assert dict(recovered.offsets) == {QueueKey("T", 0): 30, QueueKey("T", 1): 30}
    assert content(log.paths) == before


def test_a_last_record_torn_at_any_byte_is_cut_and_zeroed(tmp_path: Path) -> None:
    """Whichever prefix of it reached the disk, the log ends before it, and only zero bytes follow.

    The exception is its properties' text (4 bytes), which only the journal covers: see test_torn_batch.
    """
    log = make_log(tmp_path, 3, body_size=20)
    whole = content(log.paths)
    start, end = log.places[-1], log.ends[-1]
    for kept in range(end - start - 4):
        patch(log.paths, start, whole[start : start + kept] + bytes(end - start - kept))
        assert run(log.paths).end == start
        assert content(log.paths) == whole[:start] + bytes(len(whole) - start)


def test_a_wrong_byte_of_the_last_body_cuts_the_record(tmp_path: Path) -> None:
    """Above the floor a body that fails its CRC is the torn end."""
    log = make_log(tmp_path, 3, body_size=20)
    whole = content(log.paths)
    body_at = log.places[-1] + 88
    for at in range(body_at, body_at + 20):
        patch(log.paths, log.places[-1], whole[log.places[-1] : log.ends[-1]])
        patch(log.paths, at, bytes([whole[at] ^ 0x10]))
        recovered = run(log.paths)
        assert (recovered.end, recovered.damages) == (log.places[-1], [])


def test_records_after_a_torn_one_are_zeroed_too(tmp_path: Path) -> None:
    """Pages reach the disk in any order: no data above the torn record may come back later, in any file."""
    log = make_log(tmp_path, 60)
    torn = log.places[10]
    patch(log.paths, torn + 100, b"?")
    recovered = run(log.paths)
    after = content(log.paths)
    assert recovered.end == torn
    assert not any(after[torn:])
    assert dict(recovered.offsets) == {QueueKey("T", 0): 5, QueueKey("T", 1): 5}
    assert len(after) == FILE_SIZE, "later files with data must be removed"


def test_one_preallocated_file_is_kept(tmp_path: Path) -> None:
    """An empty file after the end is normal after a crash; a second one is removed."""
    log = make_log(tmp_path, 3)
    for start in (FILE_SIZE, 2 * FILE_SIZE):
        (log.paths.commit_log / f"{start:020d}").write_bytes(bytes(FILE_SIZE))
    assert run(log.paths).end == log.end
    assert [path.name for path in sorted(log.paths.commit_log.iterdir())] == [f"{0:020d}", f"{FILE_SIZE:020d}"]


@pytest.mark.parametrize("source", ["checkpoint", "marks"])
@pytest.mark.parametrize("where", ["size", "magic", "position", "body"])
def test_damage_below_the_floor_is_not_cut(tmp_path: Path, source: str, where: str) -> None:
    """Below the confirm offset on disk, or a durable mark, damage is reported, and all data after it counts."""
    log = make_log(tmp_path, 60)
    if source == "checkpoint":
        confirm(log.paths, log.end)
    else:
        marks = Marks.open_to_write(log.paths.marks, STORAGE, shards=2, term=1)
        marks.publish_durable(1, log.end)
        marks.close()
    at = log.places[30]
    patch(log.paths, at + {"size": 1, "magic": 5, "position": 30, "body": 95}[where], b"\x7f")
    before = content(log.paths)
    recovered = run(log.paths)
    assert recovered.end == log.end
    (damage,) = recovered.damages
    assert (damage.physical_offset, damage.size) == (at, log.ends[30] - at)
    assert dict(recovered.offsets) == {QueueKey("T", 0): 30, QueueKey("T", 1): 30}
    assert content(log.paths) == before


def test_damage_below_the_floor_is_reported_and_a_torn_end_above_it_is_cut(tmp_path: Path) -> None:
    """Both occur at once: the damage is reported, the torn end is cut."""
    log = make_log(tmp_path, 20, body_size=200)
    confirm(log.paths, log.ends[15])
    patch(log.paths, log.places[5] + 95, b"\x7f")
    patch(log.paths, log.places[18] + 95, b"\x7f")
    recovered = run(log.paths)
    assert recovered.end == log.places[18]
    assert [damage.physical_offset for damage in recovered.damages] == [log.places[5]]


def test_the_last_record_with_a_damaged_body_keeps_its_queue_offset(tmp_path: Path) -> None:
    """Its header is right, so its queue continues after it: numbers are never reused."""
    log = make_log(tmp_path, 4)
    confirm(log.paths, log.end)
    patch(log.paths, log.places[-1] + 95, b"\x7f")
    assert run(log.paths).offsets.next(QueueKey("T", 1)) == 2


def test_a_blank_record_at_the_end_of_the_last_file_is_overwritten(tmp_path: Path) -> None:
    """Without a next file the log ends at the blank's start (docs/format.md §13)."""
    log = make_log(tmp_path, 30)
    (log.paths.commit_log / f"{FILE_SIZE:020d}").unlink()
    in_first = [end for end in log.ends if end < FILE_SIZE]
    assert run(log.paths).end == in_first[-1]


def test_a_blank_record_with_an_empty_next_file_continues_there(tmp_path: Path) -> None:
    """After a crash right after a roll the log continues at the next file's start."""
    log = make_log(tmp_path, 30)
    (log.paths.commit_log / f"{FILE_SIZE:020d}").write_bytes(bytes(FILE_SIZE))
    assert run(log.paths).end == FILE_SIZE
    assert len(content(log.paths)) == 2 * FILE_SIZE


def test_a_stale_record_of_another_position_ends_the_log(tmp_path: Path) -> None:
    """It is valid but for its PHYSICALOFFSET: the log ends there (RocketMQ #10017)."""
    log = make_log(tmp_path, 5)
    patch(log.paths, log.end, record_bytes(topic=b"T", queue_id=1, queue_offset=2, physical_offset=77))
    assert run(log.paths).end == log.end
    assert not any(content(log.paths)[log.end :])


def test_an_empty_store_ends_at_zero(tmp_path: Path) -> None:
    """There is no folder, no file, and no damage."""
    recovered = run(StorePaths(tmp_path))
    assert (recovered.end, len(recovered.offsets), recovered.damages) == (0, 0, [])


@pytest.mark.parametrize("confirmed", [-1, 1 << 50])
def test_invalid_confirm_offsets_do_not_affect_a_whole_log(tmp_path: Path, confirmed: int) -> None:
    """A negative one counts as none; one beyond the files is their end."""
    log = make_log(tmp_path, 30)
    confirm(log.paths, confirmed % (1 << 64))
    recovered = run(log.paths)
    if confirmed < 0:
        assert recovered.end == log.end
    assert dict(recovered.offsets) == {QueueKey("T", 0): 15, QueueKey("T", 1): 15}


def test_half_messages_use_no_queue_offset(tmp_path: Path) -> None:
    """Prepared and rolled-back transactions have queue offset 0 and do not count; a commit counts."""
    kinds = [0x4, 0xC, 0x8, 0x0]
    write_log(
        tmp_path / "commitlog",
        FILE_SIZE,
        [{"topic": b"T", "queue_id": i, "sys_flag": kind, "queue_offset": 6 * (i > 1)} for i, kind in enumerate(kinds)],
    )
    assert dict(run(StorePaths(tmp_path)).offsets) == {QueueKey("T", 2): 7, QueueKey("T", 3): 7}


def test_inner_batches_count_their_messages(tmp_path: Path) -> None:
    """INNER_BASE and INNER_NUM of the last record give the queue's next offset."""
    inner = {"INNER_NUM": "12", "INNER_BASE": "30", "UNIQ_KEY": "k"}
    write_log(
        tmp_path / "commitlog",
        FILE_SIZE,
        [{"topic": b"B", "sys_flag": 0xC0, "queue_offset": 30, "properties": properties(inner)}],
    )
    assert dict(run(StorePaths(tmp_path)).offsets) == {QueueKey("B", 0): 42}


def test_random_bytes_after_the_end_are_zeroed(tmp_path: Path) -> None:
    """Random bytes of any length after the last record are zero after recovery."""
    source = random.Random(7)
    for length in (1, 7, 8, 9, 100, 4000):
        root = tmp_path / str(length)
        log = make_log(root, 5)
        patch(log.paths, log.end, bytes(source.randrange(256) for _ in range(length)))
        assert run(log.paths).end == log.end
        assert not any(content(log.paths)[log.end :])


@pytest.mark.parametrize("bit", [12, 40, 60, 63])
def test_a_flipped_bit_in_a_queue_offset_does_not_change_the_next_offset(tmp_path: Path, bit: int) -> None:
    """No check covers the field; a wrong value would hide all later appends. It is reported instead."""
    log = make_log(tmp_path, 30)
    confirm(log.paths, log.end)
    number = (14 ^ 1 << bit).to_bytes(8, "big")
    patch(log.paths, log.places[28] + 20, number)
    recovered = run(log.paths)
    assert [(damage.physical_offset, damage.reason) for damage in recovered.damages] == [
        (log.places[28], "QUEUE_OFFSET")
    ]
    assert dict(recovered.offsets) == {QueueKey("T", 0): 14, QueueKey("T", 1): 15}
    assert recovered.end == log.end


def test_a_possible_hole_in_a_queue_is_accepted(tmp_path: Path) -> None:
    """The records between were damaged: their numbers are used up."""
    log = make_log(tmp_path, 30)
    confirm(log.paths, log.end)
    for damaged in (20, 22):
        patch(log.paths, log.places[damaged] + 4, b"????")
    assert dict(run(log.paths).offsets) == {QueueKey("T", 0): 15, QueueKey("T", 1): 15}
