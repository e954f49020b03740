"""Small originals: any single damage to a file, or to its checked copy, loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.errors import CorruptStoreError, DiskFullError
from tidemark.store.originals.checked_copy import copy_path, decode_copy, encode_copy
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.originals.delay_offsets import DelayOffsets, load_delay_offsets, save_delay_offsets
from tidemark.store.originals.format_file import FORMAT, read_format, write_format
from tidemark.store.originals.next_offsets import NextOffsets, load_next_offsets, save_next_offsets
from tidemark.store.originals.originals import RepairOutcome, querys_originals, repair, writers_originals
from tidemark.store.originals.terms import TermsFile, begin_term, read_terms
from tidemark.store.originals.tombstones import Tombstone, TombstonesFile, load_tombstones, save_tombstones
from tidemark.store.originals.topics import TopicConfig, TopicsFile, load_topics, save_config, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage, Storage

DISK = DiskStorage()


class File(NamedTuple):
    """One kind of original, with its functions to write version n and to read."""

    path: Callable[[StorePaths], Path]
    save: Callable[[StorePaths, int, Storage], object]
    load: Callable[[StorePaths], Any]


def save_groups(paths: StorePaths, number: int, storage: Storage) -> None:
    content = {"dataVersion": {"counter": number, "timestamp": number}, "offsetTable": {"t@g": {"0": number}}}
    save_config(paths.consumer_offsets, content, storage)


def topics(number: int) -> Mapping[str, TopicConfig]:
    return {f"topic{i}": TopicConfig(f"topic{i}", 4, 4, attributes={"queue.type": "BatchCQ"}) for i in range(number)}


FILES = {
    "topics": File(
        lambda paths: paths.topics,
        lambda paths, number, storage: save_topics(paths.topics, topics(number), storage, counter=number),
        lambda paths: load_topics(paths.topics),
    ),
    "delay offsets": File(
        lambda paths: paths.delay_offsets,
        lambda paths, number, storage: save_delay_offsets(
            paths.delay_offsets, DelayOffsets(number, {1: number * 100}), storage
        ),
        lambda paths: load_delay_offsets(paths.delay_offsets),
    ),
    "group offsets": File(
        lambda paths: paths.consumer_offsets, save_groups, lambda paths: load_consumer_offsets(paths.consumer_offsets)
    ),
    "tombstones": File(
        lambda paths: paths.tombstones,
        lambda paths, number, storage: save_tombstones(
            paths.tombstones, [Tombstone(f"t{i}", 4096 * (i + 1), {0: 7, 1: 9}) for i in range(number)], storage
        ),
        lambda paths: load_tombstones(paths.tombstones),
    ),
    "terms": File(
        lambda paths: paths.terms,
        lambda paths, number, storage: begin_term(paths.terms, number * 1000, storage),
        lambda paths: read_terms(paths.terms),
    ),
    "format": File(
        lambda paths: paths.format_file,
        lambda paths, number, storage: write_format(paths, storage),
        read_format,
    ),
    "queue offsets": File(
        lambda paths: paths.next_offsets,
        lambda paths, number, storage: save_next_offsets(
            paths.next_offsets, NextOffsets(number * 4096, number, {("t", 0): number}), storage
        ),
        lambda paths: load_next_offsets(paths.next_offsets),
    ),
}
DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "cut by one": lambda data: data[:-1],
    "zero": lambda data: bytes(len(data)),
    "zero sector": lambda data: bytes(min(len(data), 512)) + data[512:],
    "junk": lambda data: bytes((i * 37 + 11) % 256 for i in range(len(data))),
    "gone": lambda data: None,
}


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    return StorePaths(tmp_path)


def copy_of(path: Path) -> Path:
    copy = copy_path(path)
    assert copy is not None
    return copy


def put(path: Path, data: bytes | None) -> None:
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)


def repaired(paths: StorePaths, path: Path, **options: bool) -> RepairOutcome:
    """Return the outcome of `repair` for the file at *path*."""
    originals = [*writers_originals(paths), *querys_originals(paths)]
    (original,) = [one for one in originals if one.path == path]
    return repair(original, DISK, **options).outcome


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("target", ["file", "copy"])
@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_one_damaged_file_of_a_pair_loses_nothing(
    paths: StorePaths, file: File, target: str, damage: Callable[[bytes], bytes | None]
) -> None:
    """Every reader gets the last content, before and after the owner has repaired the pair."""
    for number in (1, 2, 3):
        file.save(paths, number, DISK)
    expected = file.load(paths)
    path = file.path(paths)
    pair = {"file": path, "copy": copy_of(path)}
    before = {name: one.read_bytes() for name, one in pair.items()}
    put(pair[target], damage(before[target]))
    assert file.load(paths) == expected
    if pair[target].exists() and pair[target].read_bytes() == before[target]:
        return  # the file is shorter than the cut, so nothing is damaged
    assert repaired(paths, path) in {RepairOutcome.RESTORED if target == "file" else RepairOutcome.COPIED}
    kept = decode_copy(pair["copy"].read_bytes())
    assert kept is not None
    assert pair["file"].read_bytes() == kept.content == before["file"]
    assert file.load(paths) == expected
    assert repaired(paths, path) is RepairOutcome.SOUND


@pytest.mark.parametrize("target", ["file", "copy"])
@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_every_flipped_bit_is_detected(paths: StorePaths, file: File, target: str) -> None:
    """This includes a bit whose flip leaves valid text with another name or number."""
    for number in (1, 2):
        file.save(paths, number, DISK)
    expected = file.load(paths)
    path = file.path(paths)
    flipped = path if target == "file" else copy_of(path)
    data = flipped.read_bytes()
    for bit in range(0, 8 * len(data), 3):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        flipped.write_bytes(damaged)
        assert file.load(paths) == expected, bit


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_kill_at_any_step_leaves_the_old_or_the_new_content(tmp_path: Path, file: File) -> None:
    """All readers agree from then on."""
    finished = StorePaths(tmp_path / "finished")
    for number in (1, 2):
        file.save(finished, number, DISK)
    for step in range(100):
        paths = StorePaths(tmp_path / str(step))
        file.save(paths, 1, DISK)
        old = file.load(paths)
        try:
            file.save(paths, 2, RecordingStorage(die_before=step))
        except KilledHere:
            seen = file.load(paths)
            assert seen in (old, file.load(finished))
            repaired(paths, file.path(paths))
            assert file.load(paths) == seen
            continue
        return
    raise AssertionError("the number of steps has no end")


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_damage_to_both_files_of_a_pair_is_reported(paths: StorePaths, file: File) -> None:
    """The error names the file and the command; --accept-older restores the previous content, if there is one."""
    for number in (1, 2):
        file.save(paths, number, DISK)
    path = file.path(paths)
    for one in (path, copy_of(path)):
        one.write_bytes(b"\0" * 100)
    if file is not FILES["queue offsets"]:  # recovery scans the log instead
        with pytest.raises(CorruptStoreError, match="tidemark store repair") as refused:
            file.load(paths)
        assert str(path) in refused.value.message
    assert repaired(paths, path) is RepairOutcome.LOST
    has_older = path.with_name(f"{path.name}.bak").exists()
    assert repaired(paths, path, accept_older=True) is (RepairOutcome.OLDER if has_older else RepairOutcome.LOST)
    assert has_older is (file is not FILES["format"])
    if has_older:
        file.load(paths)
        assert repaired(paths, path) is RepairOutcome.SOUND


@pytest.mark.parametrize("name", ["topics", "delay offsets", "group offsets"])
def test_a_file_written_by_a_broker_is_used(paths: StorePaths, name: str) -> None:
    """The file has a higher, lower or no version (another store, an old broker), or was edited by hand."""
    file = FILES[name]
    for number in (1, 2):
        file.save(paths, number, DISK)
    path = file.path(paths)
    emptied: dict[str, Any] = {"topicConfigTable" if name == "topics" else "offsetTable": {}}
    higher, lower = ({"dataVersion": {"counter": counter, "timestamp": 1}} for counter in (3, 0))
    for version in (higher, lower, {}, None):
        file.save(paths, 2, DISK)
        ours = orjson.loads(path.read_bytes())
        path.write_bytes(orjson.dumps(ours | emptied if version is None else version | emptied))
        empty = file.load(paths)
        assert not (empty.table if name == "delay offsets" else empty)
        assert repaired(paths, path) is RepairOutcome.CHANGED
        kept = decode_copy(copy_of(path).read_bytes())
        assert kept is not None
        assert kept.content == path.read_bytes()


def test_a_damaged_file_is_kept_for_inspection(paths: StorePaths) -> None:
    """An operator may inspect it; it is kept outside of the folders that a broker reads."""
    save_topics(paths.topics, topics(1), DISK, counter=1)
    paths.topics.write_bytes(b"{junk")
    assert repaired(paths, paths.topics) is RepairOutcome.RESTORED
    assert (paths.writer / "topics.json.damaged").read_bytes() == b"{junk"
    assert sorted(path.name for path in paths.topics.parent.iterdir()) == ["topics.json"]


def test_a_file_without_a_copy_gets_one(paths: StorePaths) -> None:
    """A store without copies opens as before, and any single damage afterwards loses nothing."""
    save_topics(paths.topics, topics(2), DISK, counter=1)
    copy_of(paths.topics).unlink()
    assert set(load_topics(paths.topics)) == {"topic0", "topic1"}
    assert repaired(paths, paths.topics) is RepairOutcome.COPIED
    paths.topics.unlink()
    assert set(load_topics(paths.topics)) == {"topic0", "topic1"}


def test_a_file_newer_than_its_copy_is_used(paths: StorePaths) -> None:
    """After a downgrade and an upgrade the file is newer than its copy."""
    for number in (1, 2):
        begin_term(paths.terms, number, DISK)
    stale = copy_of(paths.terms).read_bytes()
    begin_term(paths.terms, 3, DISK)
    copy_of(paths.terms).write_bytes(stale)
    assert [term.number for term in read_terms(paths.terms)] == [1, 2, 3]


def test_a_full_disk_changes_neither_file_nor_copy(paths: StorePaths) -> None:
    """A refused change must not take effect later."""

    class Full(DiskStorage):
        def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
            if b"TIDEMARK-COPY" not in bytes(data):
                raise DiskFullError("the disk is full")
            super().pwrite(descriptor, data, at)

    save_topics(paths.topics, topics(1), DISK, counter=1)
    with pytest.raises(DiskFullError):
        save_topics(paths.topics, topics(2), Full(), counter=2)
    assert set(load_topics(paths.topics)) == {"topic0"}
    assert repaired(paths, paths.topics) is RepairOutcome.SOUND


def test_a_store_without_originals_has_nothing_to_repair(paths: StorePaths) -> None:
    """Nothing is created."""
    originals = [*writers_originals(paths), *querys_originals(paths)]
    assert {repair(original, DISK).outcome for original in originals} == {RepairOutcome.ABSENT}
    assert (load_topics(paths.topics), read_format(paths), read_terms(paths.terms)) == ({}, None, [])


def test_only_an_intact_copy_is_decoded() -> None:
    """Any other bytes are no copy."""
    copy = encode_copy(b"content\nof lines")
    assert decode_copy(copy) == (b"content\nof lines", 0)
    for wrong in (b"", copy[:-1], copy + b"x", copy.replace(b"1 ", b"2 ", 1), b"content"):
        assert decode_copy(wrong) is None
    assert FORMAT.major == 1


def test_polling_readers_use_the_copy_of_a_lost_file(paths: StorePaths) -> None:
    """Such readers read a file only after a change: it is missing from the start, or disappears later."""
    for number in (1, 2):
        begin_term(paths.terms, number, DISK)
    save_tombstones(paths.tombstones, [Tombstone("t", 4096, {0: 1})], DISK)
    save_topics(paths.topics, topics(1), DISK, counter=1)
    watching = TermsFile(paths.terms), TombstonesFile(paths.tombstones), TopicsFile(paths.topics)
    for look in ("before", "after"):
        started_now = TermsFile(paths.terms), TombstonesFile(paths.tombstones), TopicsFile(paths.topics)
        for terms, tombstones, of_topics in (watching, started_now):
            tombstones.refresh()
            assert (terms.current().number, tombstones.dead_end("t"), set(of_topics.topics())) == (2, 4096, {"topic0"})
        if look == "before":
            for path in (paths.terms, paths.tombstones, paths.topics):
                path.unlink()
