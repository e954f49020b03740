"""A store's files as a log: what is read is what was written."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.built_store import PRE_BLANK, BuiltStore, Written
from tidemark.client.received_message import TopicQueue
from tidemark.errors import (
    CorruptStoreError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    QueueIllegalError,
    StoreError,
    TopicNotFoundError,
)
from tidemark.read.messages.message_columns import SCHEMA
from tidemark.read.pull import PullResult, pull
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitsGoneError
from tidemark.read.watermark import Watermark
from tidemark.spark.source import file_log, visible
from tidemark.spark.source.file_log import FileLog
from tidemark.spark.source.log import Bounds, Page
from tidemark.spark.source.ranges import QueueRange, split
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

_ORDERS, _BATCHES = TopicQueue("orders", 0), TopicQueue("batches", 0)
_COUNT = 14
_INNER = [range(4), range(4, 5), range(5, 6), range(6, 11), range(11, 14)]  # the third one is a single message


class Record(NamedTuple):
    """A record that was written, and the queue offsets of its messages."""

    offsets: range
    written: Written


class Built(NamedTuple):
    """A queue of a store."""

    store: BuiltStore
    queue: TopicQueue
    records: list[Record]


def tag_of(offset: int) -> str:
    """A, B and C in turn."""
    return "ABC"[offset % 3]


def body_of(offset: int) -> bytes:
    """Of different lengths."""
    return f"m{offset}".encode() * (1 + offset % 4)


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not there does not come later."""
    monkeypatch.setattr(file_log, "SETTLE_S", 0.1)


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """An empty store with a simple topic `orders` (2 queues) and a batch topic `batches`."""
    built = BuiltStore(tmp_path / "store")
    built.topic("orders", queues=2)
    built.topic("batches", batch=True)
    return built


def append_singles(store: BuiltStore, offsets: Iterable[int]) -> list[Record]:
    """To the simple queue."""
    return [
        Record(range(offset, offset + 1), store.append("orders", body_of(offset), {"TAGS": tag_of(offset)}))
        for offset in offsets
    ]


def append_inner(store: BuiltStore, inner: Iterable[range]) -> list[Record]:
    """To the batch queue: of one message at offset 5 a record of its own, else inner batches."""
    records = []
    for offsets in inner:
        if offsets == range(5, 6):
            records.append(Record(offsets, store.append("batches", body_of(5), {"TAGS": tag_of(5)})))
        else:
            elements = [(body_of(offset), {"TAGS": tag_of(offset)}, 0) for offset in offsets]
            records.append(Record(offsets, store.append_batch("batches", elements)))
    return records


@pytest.fixture(params=["simple", "batch"])
def built(request: pytest.FixtureRequest, store: BuiltStore) -> Built:
    """A queue with messages 0 … 13 that may be read, and more that may not yet."""
    if request.param == "simple":
        made = Built(store, _ORDERS, append_singles(store, range(_COUNT)))
    else:
        made = Built(store, _BATCHES, append_inner(store, _INNER))
    store.publish()
    if request.param == "simple":
        append_singles(store, range(_COUNT, _COUNT + 3))
    else:
        append_inner(store, [range(_COUNT, _COUNT + 3)])
    return made


_LIMITS = [{}, {"_BATCH_MESSAGES": 1}, {"_BATCH_MESSAGES": 3}, {"BATCH_BYTES": 300}]


@pytest.fixture(params=_LIMITS, ids=["all", "one message", "three messages", "few bytes"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How much one look at the files may give."""
    for name, value in request.param.items():
        monkeypatch.setattr(file_log, name, value)


def read(
    log: FileLog, queue: TopicQueue, start: int, end: int, tags: Iterable[str] | None = None
) -> list[tuple[int, bytes]]:
    """Offset and body of each message of all pages, of which none tells of damage."""
    pages = list(log.pages(queue, start, end, tags=None if tags is None else frozenset(tags)))
    assert [page.damage for page in pages if page.damage] == []
    return [message for page in pages for message in messages_of(page)]


def messages_of(page: Page) -> list[tuple[int, bytes]]:
    """Offset and body of each message."""
    assert page.messages.schema == SCHEMA
    columns = (page.messages.column(name).to_pylist() for name in ("queue_offset", "body"))
    return list(zip(*columns, strict=True))


def written(offsets: Iterable[int]) -> list[tuple[int, bytes]]:
    """As `read`, of what was written."""
    return [(offset, body_of(offset)) for offset in offsets]


_SPANS = list(itertools.combinations(range(_COUNT + 1), 2))


# ── what there is ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_directory_without_a_store_is_told(tmp_path: Path) -> None:
    """A task on another machine may not see the file system."""
    with pytest.raises(CorruptStoreError, match="nowhere"):
        FileLog(tmp_path / "nowhere")


def test_topics_and_queues_are_the_stores(store: BuiltStore) -> None:
    """Sorted, also queues that hold nothing yet."""
    log = FileLog(store.root)
    assert log.topics() == ["batches", "orders"]
    assert (log.queue_ids("orders"), log.queue_ids("batches")) == ([0, 1], [0])
    assert [log.bounds(queue) for queue in (_ORDERS, _BATCHES)] == [Bounds(0, 0)] * 2
    assert log.offset_at(_ORDERS, 0) is None
    log.close()


@pytest.mark.parametrize(
    ("queue", "error"),
    [(TopicQueue("nope", 0), TopicNotFoundError), (TopicQueue("orders", 2), QueueIllegalError)],
    ids=["topic", "queue"],
)
def test_what_does_not_exist_is_an_error(store: BuiltStore, queue: TopicQueue, error: type[StoreError]) -> None:
    """Whatever is asked about it."""
    log = FileLog(store.root)
    with pytest.raises(error):
        log.bounds(queue)
    with pytest.raises(error):
        log.offset_at(queue, 0)
    with pytest.raises(error):
        log.end_within(queue, 0, 1, 1)
    with pytest.raises(error):
        list(log.pages(queue, 0, 1, tags=None))


def test_an_unknown_topic_has_no_queues(store: BuiltStore) -> None:
    """An error, not an empty list."""
    with pytest.raises(TopicNotFoundError):
        FileLog(store.root).queue_ids("nope")


def test_bounds_are_what_may_be_read(built: Built) -> None:
    """Not what is in the files; what is published later is seen at once."""
    log = FileLog(built.store.root)
    assert log.bounds(built.queue) == (0, _COUNT)
    built.store.publish()
    assert log.bounds(built.queue) == (0, _COUNT + 3)


def test_a_store_that_is_indexed_for_the_first_time_is_noticed(tmp_path: Path) -> None:
    """At once: whoever waits for it looks again."""
    store = BuiltStore(tmp_path / "store", marked=False)
    store.topic("orders")
    append_singles(store, range(3))
    log = FileLog(store.root)
    assert log.bounds(_ORDERS) == (0, 0)
    marks = Marks.open_to_write(StorePaths(store.root).marks, DiskStorage(), shards=1, term=0)
    marks.publish(0, store.end)
    assert log.bounds(_ORDERS) == (0, 3)
    marks.close()


def test_bounds_begin_behind_what_was_deleted(store: BuiltStore) -> None:
    """With the first log file the messages in it are gone."""
    records = [store.append("orders", bytes(4000)) for _ in range(40)]
    store.publish()
    log = FileLog(store.root)
    assert log.bounds(_ORDERS) == (0, 40)
    (store.root / "commitlog" / f"{0:020d}").unlink()
    left = [record.queue_offset for record in records if record.physical_offset >= store.log_file_size]
    assert log.bounds(_ORDERS) == (left[0], 40)


# ── offsets by time ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_time_is_that_of_the_first_message_stored_then_or_later(built: Built) -> None:
    """For every millisecond; an inner batch was stored as one."""
    log = FileLog(built.store.root)
    times = [(record.written.store_timestamp, record.offsets.start) for record in built.records]
    for timestamp_ms in range(times[0][0] - 2, times[-1][0] + 3):
        expected = next((offset for stored_ms, offset in times if stored_ms >= timestamp_ms), None)
        assert log.offset_at(built.queue, timestamp_ms) == expected


# ── pages ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("limits")
def test_pages_hold_exactly_the_messages_of_a_range(built: Built) -> None:
    """For each start and end, within inner batches too, however much comes at once."""
    log = FileLog(built.store.root)
    for start, end in _SPANS:
        assert read(log, built.queue, start, end) == written(range(start, end))


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("tags", [["A"], ["B", "C"], ["C", "nope"], ["nope"]], ids=str)
def test_pages_hold_messages_with_a_wanted_tag(built: Built, tags: list[str]) -> None:
    """Message by message, in an inner batch too."""
    log = FileLog(built.store.root)
    for start, end in _SPANS:
        wanted = [offset for offset in range(start, end) if tag_of(offset) in tags]
        assert read(log, built.queue, start, end, tags) == written(wanted)


@pytest.mark.usefixtures("limits")
def test_the_last_page_reaches_the_end_of_the_range(built: Built) -> None:
    """So that whoever has read all pages knows that nothing is missing, with tags as without."""
    log = FileLog(built.store.root)
    for (start, end), tags in itertools.product(_SPANS, (None, frozenset({"A"}))):
        *_, last = log.pages(built.queue, start, end, tags=tags)
        assert last.next_offset >= end


@pytest.mark.parametrize("least", [2, 3, 5, _COUNT])
def test_cut_ranges_hold_together_what_the_queue_holds(built: Built, least: int) -> None:
    """Although cuts lie within inner batches."""
    log = FileLog(built.store.root)
    parts = split([QueueRange(*built.queue, 0, _COUNT)], least)
    found = [read(log, part.queue, part.start, part.end) for part in parts]
    assert len(parts) == least
    assert list(itertools.chain(*found)) == written(range(_COUNT))


def test_an_empty_range_has_no_page(built: Built) -> None:
    """Anywhere in the queue."""
    log = FileLog(built.store.root)
    assert [list(log.pages(built.queue, at, at, tags=None)) for at in (0, 5, _COUNT)] == [[], [], []]


@pytest.mark.usefixtures("limits")
def test_damage_is_told_once_and_the_rest_is_read(built: Built) -> None:
    """By reason and queue offset: with an inner batch all its messages are missing."""
    damaged = built.records[3]
    built.store.write_log(damaged.written.physical_offset + 88, b"\xff")
    pages = list(FileLog(built.store.root).pages(built.queue, 0, _COUNT, tags=None))
    told = [one for page in pages for one in page.damage]
    assert told == [f"BODY_CRC at queue offset {damaged.offsets.start}"]
    left = [offset for offset in range(_COUNT) if offset not in damaged.offsets]
    assert [message for page in pages for message in messages_of(page)] == written(left)


@pytest.mark.parametrize("tags", [None, "AB", "B"])
def test_damage_outside_the_range_is_not_told(built: Built, tags: str | None) -> None:
    """Neither before its start nor at its end, whatever is looked for."""
    log = FileLog(built.store.root)
    first, *_, last = built.records
    for record in (first, last):
        built.store.write_log(record.written.physical_offset + 88, b"\xff")
    inside = range(first.offsets.stop, last.offsets.start)
    expected = written(offset for offset in inside if tags is None or tag_of(offset) in tags)
    assert read(log, built.queue, inside.start, inside.stop, tags) == expected


def test_messages_that_are_gone_are_an_error(store: BuiltStore) -> None:
    """It tells where the queue begins now; from there on all is read."""
    for offset in range(40):
        store.append("orders", bytes([offset]) * 4000)
    store.publish()
    log = FileLog(store.root)
    assert len(read(log, _ORDERS, 0, 40)) == 40
    (store.root / "commitlog" / f"{0:020d}").unlink()
    begin = log.bounds(_ORDERS).min_offset
    with pytest.raises(OffsetTooSmallError) as gone:
        read(log, _ORDERS, begin - 1, 40)
    assert gone.value.min_offset == begin
    assert read(log, _ORDERS, begin, 40) == [(offset, bytes([offset]) * 4000) for offset in range(begin, 40)]


@pytest.mark.parametrize("left", ["nothing", "a mount point"])
def test_a_store_that_vanishes_between_pages_is_told(built: Built, monkeypatch: pytest.MonkeyPatch, left: str) -> None:
    """It is no loss that may be passed over, whatever of its files is open; nothing waits for it to come back."""
    monkeypatch.setattr(file_log, "_BATCH_MESSAGES", 1)
    root = built.store.root
    pages = FileLog(root).pages(built.queue, 0, _COUNT, tags=None)
    next(pages)
    root.rename(root.with_name("away"))
    if left == "a mount point":
        root.mkdir()
    with pytest.raises(CorruptStoreError, match=f"no store at {root}: check that this machine mounts its file system"):
        list(pages)


def test_a_mount_point_without_a_store_is_told(built: Built) -> None:
    """A task runs on a machine that does not see what the driver saw."""
    root = built.store.root
    root.rename(root.with_name("away"))
    root.mkdir()
    with pytest.raises(CorruptStoreError, match=f"no store at {root}: check that this machine mounts its file system"):
        list(FileLog(root).pages(built.queue, 0, _COUNT, tags=None))


def test_messages_that_go_away_between_pages_are_an_error(store: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that came before it hold."""
    monkeypatch.setattr(file_log, "_BATCH_MESSAGES", 5)
    for _ in range(40):
        store.append("orders", bytes(4000))
    store.publish()
    pages = FileLog(store.root).pages(_ORDERS, 0, 40, tags=None)
    assert [offset for offset, _ in messages_of(next(pages))] == [0, 1, 2, 3, 4]
    (store.root / "commitlog" / f"{0:020d}").unlink()
    with pytest.raises(OffsetTooSmallError):
        list(pages)


def test_a_file_that_is_missing_in_the_middle_of_the_log_is_damage(tmp_path: Path) -> None:
    """Nothing has expired: the queue begins where it did, so its messages are not merely old."""
    store = BuiltStore(tmp_path, log_file_size=512)
    store.topic("orders")
    written = [store.append("orders", b"%d" % number) for number in range(12)]
    store.publish()
    (tmp_path / "commitlog" / f"{512:020d}").unlink()
    there = [one.queue_offset for one in written if one.physical_offset // 512 != 1]
    pages = list(FileLog(tmp_path).pages(_ORDERS, 0, 12, tags=None))
    found = [offset for page in pages for offset in page.messages.column("queue_offset").to_pylist()]
    assert found == there
    assert sum(len(page.damage) for page in pages) == 12 - len(there)


@pytest.mark.parametrize("times", [1, 4])
def test_files_that_expire_during_a_look_are_looked_for_again(
    built: Built, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The queue has other bounds then, and mostly what is asked for is still within them."""
    failures = iter(range(times))

    def failing(*arguments: Any) -> PullResult:
        if next(failures, None) is not None:
            raise UnitsGoneError("the queue's file has expired")
        return pull(*arguments)

    monkeypatch.setattr(file_log, "pull", failing)
    assert read(FileLog(built.store.root), built.queue, 0, _COUNT) == written(range(_COUNT))


def test_files_that_stay_away_are_a_loss(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not look for ever."""

    def failing(*arguments: Any) -> PullResult:
        raise UnitsGoneError("the queue's file has expired")

    monkeypatch.setattr(file_log, "pull", failing)
    with pytest.raises(OffsetTooSmallError):
        read(FileLog(built.store.root), built.queue, 0, _COUNT)


@pytest.mark.usefixtures("limits")
def test_a_hole_in_a_queue_is_stepped_over(store: BuiltStore) -> None:
    """Pre-blank units are no messages, wherever a range begins and ends."""
    append_singles(store, range(3))
    store.write_units("orders", 0, 3, PRE_BLANK * 4)
    store.next["orders", 0] = 7
    append_singles(store, range(7, 10))
    store.publish()
    log = FileLog(store.root)
    for start, end in itertools.combinations(range(11), 2):
        assert read(log, _ORDERS, start, end) == written(n for n in range(start, end) if not 3 <= n < 7)


@pytest.mark.parametrize(
    ("span", "lost"),
    [((0, 160), 50), ((40, 60), 50), ((49, 101), 50), ((60, 70), 60), ((60, 110), 60)],
    ids=str,
)
def test_missing_file_of_a_queue_is_reported_as_damage(store: BuiltStore, span: tuple[int, int], lost: int) -> None:
    """Of three files of fifty units the second one is away: the others' messages come, and the loss is damage."""
    append_singles(store, range(160))
    store.publish()
    (store.root / "consumequeue" / "orders" / "0" / f"{50 * 20:020d}").unlink()
    pages = list(FileLog(store.root).pages(_ORDERS, *span, tags=None))
    found = [offset for page in pages for offset in page.messages.column("queue_offset").to_pylist()]
    assert found == [n for n in range(*span) if not 50 <= n < 100]
    assert [damage for page in pages for damage in page.damage] == [f"QUEUE_FILE_MISSING at queue offset {lost}"]


@pytest.mark.parametrize("span", [(10, _COUNT + 2), (_COUNT, _COUNT + 2), (_COUNT + 1, _COUNT + 2)], ids=str)
def test_a_range_beyond_what_may_be_read_is_an_error(built: Built, span: tuple[int, int]) -> None:
    """Messages that a stream was promised are not there: a store went back, or this machine sees an older state."""
    with pytest.raises(OffsetOutOfRangeError):
        list(FileLog(built.store.root).pages(built.queue, *span, tags=None))


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def end_by_sum(records: list[Record], start: int, end: int, max_bytes: int) -> int:
    """How far from *start* the records' sizes come to max_bytes; one that is only begun counts as a whole."""
    reached, left = start, max_bytes
    for offsets, (_, size, *_) in records:
        if offsets.stop > start and offsets.start < end and left >= 0:
            left -= size
            reached = min(offsets.stop, end) if left >= 0 else reached
    return reached


@pytest.mark.parametrize("at_once", [1, 2, 65_536])
def test_an_end_within_bytes_is_that_of_the_sum_of_sizes(
    built: Built, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """For each start, end and number of records, to the byte; however many units are looked at together."""
    monkeypatch.setattr(file_log, "_UNITS_AT_ONCE", at_once)
    log = FileLog(built.store.root)
    for start, end in _SPANS:
        sizes = [record.written.size for record in built.records if record.offsets.stop > start]
        for total in [0, *itertools.accumulate(sizes)]:
            for max_bytes in range(max(0, total - 1), total + 2):
                expected = end_by_sum(built.records, start, end, max_bytes)
                assert log.end_within(built.queue, start, end, max_bytes) == expected


def test_a_missing_file_has_no_bytes(store: BuiltStore) -> None:
    """What lies behind it counts as if it came next."""
    records = append_singles(store, range(160))
    store.publish()
    (store.root / "consumequeue" / "orders" / "0" / f"{50 * 20:020d}").unlink()
    log, left = FileLog(store.root), records[:50] + records[100:]
    total = sum(record.written.size for record in left)
    assert log.end_within(_ORDERS, 0, 160, total) == 160
    assert log.end_within(_ORDERS, 0, 160, total - 1) == 159
    assert log.end_within(_ORDERS, 0, 160, sum(record.written.size for record in left[:60])) == 110
    assert log.end_within(_ORDERS, 60, 70, 1_000_000) == 70


def test_a_hole_has_no_bytes(store: BuiltStore) -> None:
    """A stream must come over it, and never takes it for a message."""
    records = append_singles(store, range(3))
    store.write_units("orders", 0, 3, PRE_BLANK * 4)
    store.next["orders", 0] = 7
    records += append_singles(store, range(7, 10))
    store.publish()
    log = FileLog(store.root)
    total = sum(record.written.size for record in records)
    assert log.end_within(_ORDERS, 0, 10, total) == 10
    assert log.end_within(_ORDERS, 3, 10, total) == 10


@pytest.mark.parametrize(("end", "expected"), [(70, 70), (100, 100), (110, 100)])
def test_what_lies_in_a_missing_file_costs_nothing(store: BuiltStore, end: int, expected: int) -> None:
    """However few bytes are left, the range reaches to the file behind it."""
    append_singles(store, range(160))
    store.publish()
    (store.root / "consumequeue" / "orders" / "0" / f"{50 * 20:020d}").unlink()
    assert FileLog(store.root).end_within(_ORDERS, 60, end, 1) == expected


# ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def watermarks(monkeypatch: pytest.MonkeyPatch, *seen: tuple[int, int]) -> list[Watermark]:
    """Let a look at the store answer these (visible, committed) in turn, then the last one; what was answered."""
    answered: list[Watermark] = []

    def look(reader: StoreReader) -> Watermark:
        reached, committed = seen[min(len(answered), len(seen) - 1)]
        answered.append(Watermark(1, reached, 0, committed))
        return answered[-1]

    monkeypatch.setattr(StoreReader, "watermark", look)
    monkeypatch.setattr(visible, "_LOOK_S", 0.0)
    return answered


def test_settling_waits_for_what_was_committed_when_it_began(
    store: BuiltStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for what a busy writer commits meanwhile."""
    answered = watermarks(monkeypatch, (10, 30), (20, 50), (29, 60), (30, 90), (40, 99))
    FileLog(store.root).settle()
    assert answered[-1].physical_offset == 30


def test_settling_ends_after_a_while(store: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline that stands must not hold a query for ever."""
    monkeypatch.setattr(file_log, "SETTLE_S", 0.01)
    answered = watermarks(monkeypatch, (10, 30))
    FileLog(store.root).settle()
    assert answered[-1].physical_offset == 10


def test_nothing_waits_where_all_may_be_read(store: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a store that nobody writes to."""
    monkeypatch.setattr(visible, "_LOOK_S", 1000.0)
    append_singles(store, range(3))
    store.publish()
    FileLog(store.root).settle()
