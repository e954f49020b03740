"""Building of queue files: positions of units, pre-blank heads, holes, duplicates, restarts (docs/format.md §4, §5)."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tidemark.format.dispatch_request import DISPATCH_REQUEST, RequestArray
from tidemark.index.build import BatchConsumeQueueBuilder, ConsumeQueueBuilder
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

BLANK = bytes.fromhex("00000000000000007fffffff0000000000000000")  # docs/format.md §4


def requests(*rows: tuple[int, int], size: int = 100) -> RequestArray:
    """Return rows of (physical offset, queue offset)."""
    made = np.zeros(len(rows), DISPATCH_REQUEST)
    for row, (physical_offset, queue_offset) in zip(made, rows, strict=True):
        row["physical_offset"], row["queue_offset"], row["message_size"] = physical_offset, queue_offset, size
        row["tags_code"], row["base_offset"], row["batch_size"] = -queue_offset, queue_offset, 1
    return made


def unit(physical_offset: int, queue_offset: int, size: int = 100) -> bytes:
    return struct.pack(">qiq", physical_offset, size, -queue_offset)


def simple(folder: Path, *, mark: int = 0, file_size: int = 200) -> ConsumeQueueBuilder:
    return ConsumeQueueBuilder(MappedFileQueue(folder, file_size, DiskStorage()), mark=mark)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name.lstrip("0") or "0": path.read_bytes() for path in sorted(folder.iterdir())}


def test_unit_n_is_stored_at_byte_20_n_across_files(tmp_path: Path) -> None:
    """25 units are in files of ten."""
    assert simple(tmp_path).build(requests(*((100 * i, i) for i in range(25)))) == []
    data = b"".join(content(tmp_path).values())
    assert data == b"".join(unit(100 * i, i) for i in range(25)).ljust(600, b"\0")


def test_a_queue_that_begins_above_zero_has_a_pre_blank_head_in_its_first_file(tmp_path: Path) -> None:
    """The first unit is 13: the file that holds it starts at unit 10 (OWN5 of RocketMQ's list, small)."""
    simple(tmp_path).build(requests((5000, 13), (5100, 14)))
    assert content(tmp_path) == {"200": (BLANK * 3 + unit(5000, 13) + unit(5100, 14)).ljust(200, b"\0")}


def test_an_empty_first_file_of_a_killed_builder_is_rewritten(tmp_path: Path) -> None:
    """The builder was killed between creating the file and its pre-blank head: the queue still begins above zero."""
    MappedFileQueue(tmp_path, 200, DiskStorage()).create_file(200)
    assert simple(tmp_path).build(requests((5000, 13))) == []
    assert content(tmp_path) == {"200": (BLANK * 3 + unit(5000, 13)).ljust(200, b"\0")}


@pytest.mark.parametrize("first", [-1, -(1 << 62), (1 << 63) - 1, 1 << 59])
def test_a_first_queue_offset_that_no_file_can_hold_is_reported(tmp_path: Path, first: int) -> None:
    """A flipped high bit in a queue's first record must not create a file that no process can load."""
    oddities = simple(tmp_path).build(requests((0, first), (100, 1), (200, 2)))
    assert content(tmp_path)["0"][:60] == BLANK + unit(100, 1) + unit(200, 2)
    assert [(odd.reason, odd.queue_offset) for odd in oddities] == [("QUEUE_OFFSET", first)]


def test_records_with_negative_queue_offsets_get_no_units(tmp_path: Path) -> None:
    """The consecutive queue offsets start below zero."""
    oddities = simple(tmp_path).build(requests((0, -2), (100, -1), (200, 0), (300, 1)))
    assert content(tmp_path)["0"][:60] == unit(200, 0) + unit(300, 1) + bytes(20)
    assert [odd.reason for odd in oddities] == ["QUEUE_OFFSET"]


def test_a_hole_gets_pre_blank_units_and_is_reported(tmp_path: Path) -> None:
    """Records 1 and 2 are damaged: their units are blank, and the numbering stays."""
    builder = simple(tmp_path)
    oddities = builder.build(requests((0, 0), (300, 3)))
    assert content(tmp_path)["0"][:80] == unit(0, 0) + BLANK * 2 + unit(300, 3)
    assert [(odd.reason, odd.queue_offset) for odd in oddities] == [("QUEUE_HOLE", 3)]


def test_an_impossibly_wide_hole_is_reported_and_gets_no_units(tmp_path: Path) -> None:
    """Between two records 200 bytes apart at most two can be missing: the queue offset itself is wrong."""
    builder = simple(tmp_path)
    oddities = builder.build(requests((0, 0), (200, 1 << 60), (300, 1)))
    assert content(tmp_path)["0"][:60] == unit(0, 0) + unit(300, 1) + bytes(20)
    assert [odd.reason for odd in oddities] == ["QUEUE_OFFSET"]


def test_restarted_queue_offsets_are_appended_as_in_rocketmq(tmp_path: Path) -> None:
    """Queue offset 0 is exempt from the order check; the following records are duplicates (docs/format.md §4)."""
    builder = simple(tmp_path)
    builder.build(requests((0, 0), (100, 1)))
    oddities = builder.build(requests((200, 0), (300, 1), (400, 2), (500, 3)))
    assert content(tmp_path)["0"][:80] == unit(0, 0) + unit(100, 1) + unit(200, 0) + unit(500, 3)
    assert [odd.reason for odd in oddities] == ["QUEUE_RESTART", "QUEUE_REPEAT"]


def test_building_again_from_an_earlier_mark_gives_the_same_bytes(tmp_path: Path) -> None:
    """A builder that did not publish leaves units above its mark; the next builder writes them again."""
    rows = [(100 * i, i) for i in range(25)]
    simple(tmp_path).build(requests(*rows))
    before = content(tmp_path)
    assert simple(tmp_path, mark=700).build(requests(*rows[7:])) == []
    assert content(tmp_path) == before


@pytest.mark.parametrize("split", range(1, 24))
def test_batches_of_any_size_give_the_same_files(tmp_path: Path, split: int) -> None:
    """Building in two steps equals building in one."""
    rows = [(100 * i, i + 7) for i in range(25)]
    simple(tmp_path / "one").build(requests(*rows))
    simple(tmp_path / "two").build(requests(*rows[:split]))
    simple(tmp_path / "two", mark=100 * split).build(requests(*rows[split:]))
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_batch_queue_appends_units_wherever_their_queue_offsets_are(tmp_path: Path) -> None:
    """A file has two units; its name is a byte position (docs/format.md §5)."""
    files = MappedFileQueue(tmp_path, 92, DiskStorage())
    made = requests((0, 1000), (100, 1010), (200, 1020))
    made["batch_size"], made["store_timestamp"] = 10, 77
    assert BatchConsumeQueueBuilder(files, mark=0).build(made) == []
    units = [
        struct.pack(">qiqqqhii", physical_offset, 100, -base, 77, base, 10, -1, 0)
        for physical_offset, base in ((0, 1000), (100, 1010), (200, 1020))
    ]
    assert content(tmp_path) == {"0": units[0] + units[1], "92": units[2] + bytes(46)}


def test_a_batch_without_messages_gets_no_unit_and_is_reported(tmp_path: Path) -> None:
    """A unit of size zero would end the queue for every reader."""
    files = MappedFileQueue(tmp_path, 460, DiskStorage())
    made = requests((0, 0), (100, 1), (200, 1))
    made["batch_size"][1] = 0
    oddities = BatchConsumeQueueBuilder(files, mark=0).build(made)
    assert [(odd.reason, odd.physical_offset) for odd in oddities] == [("BATCH_SIZE", 100)]
    assert content(tmp_path)["0"][92:] == bytes(460 - 92)


def test_a_batch_queue_is_rewritten_from_its_mark(tmp_path: Path) -> None:
    """Units at or above the mark are written again at the same position."""
    rows = [(100 * i, i) for i in range(9)]
    for folder, mark in (("one", None), ("two", 400)):
        files = MappedFileQueue(tmp_path / folder, 92, DiskStorage())
        BatchConsumeQueueBuilder(files, mark=0).build(requests(*rows))
        if mark is not None:
            BatchConsumeQueueBuilder(files, mark=mark).build(requests(*rows[mark // 100 :]))
    assert content(tmp_path / "one") == content(tmp_path / "two")
