"""The marks of the pipeline's shards."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidemark.errors import CorruptStoreError
from tidemark.store import marks as module
from tidemark.store.file_watch import FileWatch
from tidemark.store.marks import MAX_SHARDS, Marks
from tidemark.store.storage import DiskStorage, Words


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "indexer" / "marks"


def opened(path: Path, *, shards: int = 3, term: int = 1) -> Marks:
    return Marks.open_to_write(path, DiskStorage(), shards=shards, term=term)


def moved(path: Path, *, visible: list[int], durable: list[int]) -> Marks:
    marks = opened(path, shards=len(visible))
    for shard, (seen, kept) in enumerate(zip(visible, durable, strict=True)):
        marks.publish(shard, seen)
        marks.publish_durable(shard, kept)
    return marks


def restart_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_boot_number", lambda: 12345)


def test_new_marks_are_zero_in_the_given_term(path: Path) -> None:
    """All shards are at 0, in the given term."""
    marks = opened(path, term=7)
    assert (marks.watermark(), marks.durable_floor(), marks.shards, marks.term) == (0, 0, 3, 7)
    assert marks.published_ms == 0
    marks.close()


def test_the_published_watermark_is_the_least_visible_mark(path: Path) -> None:
    """Everything below it is indexed by every shard."""
    marks = moved(path, visible=[300, 200, 250], durable=[100, 50, 250])
    assert (marks.watermark(), marks.durable_floor(), marks.greatest_durable()) == (200, 50, 250)
    assert [marks.visible(shard) for shard in range(3)] == [300, 200, 250]
    assert [marks.durable(shard) for shard in range(3)] == [100, 50, 250]
    assert marks.published_ms > 1_600_000_000_000
    marks.close()


def test_the_marks_file_has_the_documented_words(path: Path) -> None:
    """Magic, number of shards, and four words per shard from word 8, in native byte order (docs/format.md §8)."""
    moved(path, visible=[300, 200], durable=[100, 50]).close()
    words = struct.unpack("=512Q", path.read_bytes())
    assert path.read_bytes()[:8] == b"TIDEMRK1"
    assert words[1] == 2
    assert words[8:11] == (300, 100, 1)
    assert words[12:15] == (200, 50, 1)
    assert not any(words[16:])


def test_moving_the_least_mark_notifies_watchers(path: Path) -> None:
    """A reader sees the new watermark immediately; a shard that does not move the minimum wakes no watcher."""
    marks = opened(path)
    reader = Marks.open_read_only(path)
    watch = FileWatch()
    watch.watch(path)
    marks.publish(2, 30)
    marks.publish(0, 10)
    assert (watch.take(), marks.published_ms) == (False, 0)
    marks.publish(1, 20)
    assert reader.watermark() == 10
    assert watch.take()
    marks.publish(0, 40)
    assert reader.watermark() == 20
    assert watch.take()
    watch.close()
    marks.close()
    reader.close()


def test_two_concurrent_publications_both_notify_watchers(path: Path) -> None:
    """Each may see that the other one has moved: a watcher that was woken by the first one reads again."""
    marks = opened(path, shards=2)
    watch = FileWatch()
    watch.watch(path)
    first, second = module._VISIBLE[:2]
    for shard, own in ((0, first), (1, second)):
        for word in (first, second):  # the other one has stored its mark and not woken watchers yet
            marks._words.store(word, 0 if word == own else 10)
        marks.publish(shard, 10)
        assert watch.take()
    watch.close()
    marks.close()


def test_a_frequent_reader_gets_term_watermark_and_time_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = moved(path, visible=[300, 200, 250], durable=[100, 50, 250])
    assert marks.published() == (marks.term, marks.watermark(), marks.published_ms) == (1, 200, marks.published_ms)
    restart_machine(monkeypatch)
    assert marks.published() == (1, 50, marks.published_ms)
    marks.close()


class ChangedDuringLoads:
    """Words that change just before the load number *before*."""

    def __init__(self, words: Words, before: int, change: Callable[[], None]) -> None:
        self._words = words
        self._left = before
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._words, name)

    def load_every(self, step: int, start: int, end: int) -> list[int]:
        if self._left == 0:
            self._change()
        self._left -= 1
        return self._words.load_every(step, start, end)


@pytest.mark.parametrize("before", range(4))
def test_a_mark_of_an_older_term_is_never_read_with_a_newer_term(path: Path, before: int) -> None:
    """A shard that adopts a term lowers its mark first."""
    marks = moved(path, visible=[300], durable=[300])
    reader = Marks.open_read_only(path)
    reader._words = ChangedDuringLoads(reader._words, before, lambda: marks.adopt_term(0, 2, end_offset=120))
    term, watermark, _ = reader.published()
    assert (term, watermark) in ((1, 300), (1, 120), (2, 120))
    marks.close()
    reader.close()


@pytest.mark.parametrize("shards", [1, 2, 5, MAX_SHARDS])
def test_a_new_number_of_shards_starts_all_at_the_least_durable_mark(path: Path, shards: int) -> None:
    """Queues change their shard, so no shard may start above the minimum of all durable marks."""
    moved(path, visible=[300, 200, 250], durable=[100, 50, 250]).close()
    marks = opened(path, shards=shards, term=9)
    assert marks.shards == shards
    assert {marks.visible(shard) for shard in range(shards)} == {50}
    assert {marks.durable(shard) for shard in range(shards)} == {50}
    assert marks.term == 1
    marks.close()


def test_an_unchanged_number_of_shards_keeps_the_marks(path: Path) -> None:
    """Opening again changes nothing."""
    moved(path, visible=[300, 200], durable=[100, 50]).close()
    marks = opened(path, shards=2, term=9)
    assert (marks.watermark(), marks.durable_floor(), marks.term) == (200, 50, 1)
    assert not marks.machine_was_restarted
    marks.close()


def test_after_a_reboot_only_durable_marks_are_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Visible marks may have reached the disk without the data below them."""
    moved(path, visible=[300, 200], durable=[100, 50]).close()
    restart_machine(monkeypatch)
    reader = Marks.open_read_only(path)
    assert (reader.is_of_this_boot(), reader.watermark()) == (False, 50)
    marks = opened(path, shards=2)
    assert marks.machine_was_restarted
    assert [marks.visible(shard) for shard in range(2)] == [100, 50]
    assert not reader.is_of_this_boot(), "the next start must see it too, until everything fits the marks again"
    marks.claim_boot()
    assert reader.is_of_this_boot()
    marks.close()
    reader.close()


def test_a_new_term_clamps_the_marks_of_the_adopting_shard(path: Path) -> None:
    """Marks above the writer's recovered end are lowered, others stay; the watermark has the oldest term."""
    marks = moved(path, visible=[300, 200], durable=[250, 50])
    marks.adopt_term(0, 2, end_offset=220)
    assert (marks.visible(0), marks.durable(0), marks.shard_term(0), marks.term) == (220, 220, 2, 1)
    marks.adopt_term(1, 2, end_offset=220)
    assert (marks.visible(1), marks.durable(1), marks.term) == (200, 50, 2)
    marks.close()


def test_set_back_lowers_all_marks_of_one_shard(path: Path) -> None:
    """All of its marks move, no other shard's."""
    marks = moved(path, visible=[300, 200], durable=[250, 50])
    marks.set_back(0, 10)
    assert (marks.visible(0), marks.durable(0), marks.visible(1), marks.durable(1)) == (10, 10, 200, 50)
    marks.close()


def test_the_intended_end_survives_a_killed_builder(path: Path) -> None:
    """The next process reads the end of the chunk that was being built."""
    marks = opened(path)
    marks.intend(1, 77)
    marks.close()
    again = opened(path)
    assert (again.intended(0), again.intended(1), again.visible(1)) == (0, 77, 0)
    again.close()


@pytest.mark.parametrize("shards", [0, -1, MAX_SHARDS + 1])
def test_an_impossible_number_of_shards_is_refused(path: Path, shards: int) -> None:
    """The file has room for a hundred."""
    with pytest.raises(ValueError, match="shards"):
        opened(path, shards=shards)


@pytest.mark.parametrize("content", [None, b"", bytes(4096)])
def test_missing_or_incomplete_marks_are_not_found(path: Path, content: bytes | None) -> None:
    """There is no file, or the pipeline is just creating it."""
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileNotFoundError):
        Marks.open_read_only(path)


@pytest.mark.parametrize(
    "content",
    [b"x" * 100, b"TIDEMRK2" + bytes(4088), struct.pack("=8sQ", b"TIDEMRK1", 101).ljust(4096, b"\0")],
)
def test_an_invalid_marks_file_is_damage(path: Path, content: bytes) -> None:
    """The file has another size, another version, or an impossible number of shards."""
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(CorruptStoreError):
        Marks.open_read_only(path)
