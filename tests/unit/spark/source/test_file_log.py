"""A store's files as a log: written messages are read unchanged."""

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
from tidemark.spark.source.log import Bounds, MessagePage
from tidemark.spark.source.ranges import QueueRange, split
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

_ORDERS, _BATCHES = TopicQueue("orders", 0), TopicQueue("batches", 0)
_COUNT = 14
_INNER = [range(4), range(4, 5), range(5, 6), range(6, 11), range(11, 14)]  # the third one is a single message


class Record(NamedTuple):
    """A written record and the queue offsets of its messages."""

    offsets: range
    written: Written


class Built(NamedTuple):
    """A queue of a store."""

    store: BuiltStore
    queue: TopicQueue
    records: list[Record]


def tag_of(offset: int) -> str:
    """Return A, B and C in turn."""
    return "ABC"[offset % 3]


def body_of(offset: int) -> bytes:
    """Return bodies of different lengths."""
    return f"m{offset}".encode() * (1 + offset % 4)


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits: missing data does not come later."""
    monkeypatch.setattr(file_log, "SETTLE_S", 0.1)


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return an empty store with a simple topic `orders` (2 queues) and a batch topic `batches`."""
    built = BuiltStore(tmp_path / "store")
    built.topic("orders", queues=2)
    built.topic("batches", batch=True)
    return built


def append_singles(store: BuiltStore, offsets: Iterable[int]) -> list[Record]:
    """Append to the simple queue."""
    return [
        Record(range(offset, offset + 1), store.append("orders", body_of(offset), {"TAGS": tag_of(offset)}))
        for offset in offsets
    ]


def append_inner(store: BuiltStore, inner: Iterable[range]) -> list[Record]:
    """Append to the batch queue: a single record for the message at offset 5, otherwise inner batches."""
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
    """Return a queue with visible messages 0 … 13, and more that are not visible yet."""
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
    """Vary the limits of one look at the files."""
    for name, value in request.param.items():
        monkeypatch.setattr(file_log, name, value)


def read(
    log: FileLog, queue: TopicQueue, start: int, end: int, tags: Iterable[str] | None = None
) -> list[tuple[int, bytes]]:
    """Return offset and body of each message of all pages; no page may report damage."""
    pages = list(log.pages(queue, start, end, tags=None if tags is None else frozenset(tags)))
    assert [page.damage for page in pages if page.damage] == []
    return [message for page in pages for message in messages_of(page)]


def messages_of(page: MessagePage) -> list[tuple[int, bytes]]:
    """Return offset and body of each message."""
    assert page.messages.schema == SCHEMA
    columns = (page.messages.column(name).to_pylist() for name in ("queue_offset", "body"))
    return list(zip(*columns, strict=True))


def written(offsets: Iterable[int]) -> list[tuple[int, bytes]]:
    """Return the written messages in the form of `read`."""
    return [(offset, body_of(offset)) for offset in offsets]


_SPANS = list(itertools.combinations(range(_COUNT + 1), 2))


# ── topics, queues and bounds ───────────────────────────────────────────────────────────────────────────────────────


def test_a_directory_without_a_store_is_an_error(tmp_path: Path) -> None:
    """A task on another machine may not see the file system."""
    with pytest.raises(CorruptStoreError, match="nowhere"):
        FileLog(tmp_path / "nowhere")


def test_topics_and_queues_are_those_of_the_store(store: BuiltStore) -> None:
    """They are sorted, and include queues without messages."""
    log = FileLog(store.root)
    assert log.topics() == ["batches", "orders"]
    assert (log.queues_of("orders"), log.queues_of("batches")) == ([("orders", 0), ("orders", 1)], [("batches", 0)])
    assert [log.bounds(queue) for queue in (_ORDERS, _BATCHES)] == [Bounds(0, 0)] * 2
    assert log.offset_at(_ORDERS, 0) is None
    log.close()


@pytest.mark.parametrize(
    ("queue", "error"),
    [(TopicQueue("nope", 0), TopicNotFoundError), (TopicQueue("orders", 2), QueueIllegalError)],
    ids=["topic", "queue"],
)
def test_a_missing_topic_or_queue_is_an_error(store: BuiltStore, queue: TopicQueue, error: type[StoreError]) -> None:
    """Every call raises it."""
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
    """It is an error, not an empty list."""
    with pytest.raises(TopicNotFoundError):
        FileLog(store.root).queues_of("nope")


def test_bounds_cover_published_messages(built: Built) -> None:
    """Unpublished messages do not count; later published ones are seen at once."""
    log = FileLog(built.store.root)
    assert log.bounds(built.queue) == (0, _COUNT)
    built.store.publish()
    assert log.bounds(built.queue) == (0, _COUNT + 3)


def test_a_first_publication_is_noticed(tmp_path: Path) -> None:
    """It is noticed at once, because a waiting reader looks again."""
    store = BuiltStore(tmp_path / "store", marked=False)
    store.topic("orders")
    append_singles(store, range(3))
    log = FileLog(store.root)
    assert log.bounds(_ORDERS) == (0, 0)
    marks = Marks.open_to_write(StorePaths(store.root).marks, DiskStorage(), shards=1, term=0)
    marks.publish(0, store.end)
    assert log.bounds(_ORDERS) == (0, 3)
    marks.close()


def test_bounds_begin_after_deleted_messages(store: BuiltStore) -> None:
    """The messages in the first log file are gone with it."""
    records = [store.append("orders", bytes(4000)) for _ in range(40)]
    store.publish()
    log = FileLog(store.root)
    assert log.bounds(_ORDERS) == (0, 40)
    (store.root / "commitlog" / f"{0:020d}").unlink()
    left = [record.queue_offset for record in records if record.physical_offset >= store.log_file_size]
    assert log.bounds(_ORDERS) == (left[0], 40)


# ── offsets by time ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_offset_by_time_is_the_first_message_at_or_after_it(built: Built) -> None:
    """Every millisecond is tried; the messages of an inner batch have one store time."""
    log = FileLog(built.store.root)
    times = [(record.written.store_timestamp, record.offsets.start) for record in built.records]
    for timestamp_ms in range(times[0][0] - 2, times[-1][0] + 3):
        expected = next((offset for stored_ms, offset in times if stored_ms >= timestamp_ms), None)
        assert log.offset_at(built.queue, timestamp_ms) == expected


# ── pages ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("limits")
def test_pages_hold_exactly_the_messages_of_a_range(built: Built) -> None:
    """Each start and end is tried, also within inner batches, with any limits of a look."""
    log = FileLog(built.store.root)
    for start, end in _SPANS:
        assert read(log, built.queue, start, end) == written(range(start, end))


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("tags", [["A"], ["B", "C"], ["C", "nope"], ["nope"]], ids=str)
def test_pages_hold_messages_with_a_requested_tag(built: Built, tags: list[str]) -> None:
    """Tags are matched message by message, also in an inner batch."""
    log = FileLog(built.store.root)
    for start, end in _SPANS:
        wanted = [offset for offset in range(start, end) if tag_of(offset) in tags]
        assert read(log, built.queue, start, end, tags) == written(wanted)


@pytest.mark.usefixtures("limits")
def test_the_last_page_reaches_the_end_of_the_range(built: Built) -> None:
    """A reader of all pages thus knows that nothing is missing, with and without tags."""
    log = FileLog(built.store.root)
    for (start, end), tags in itertools.product(_SPANS, (None, frozenset({"A"}))):
        *_, last = log.pages(built.queue, start, end, tags=tags)
        assert last.next_offset >= end


@pytest.mark.parametrize("least", [2, 3, 5, _COUNT])
def test_split_ranges_cover_the_whole_queue(built: Built, least: int) -> None:
    """The cuts may be within inner batches."""
    log = FileLog(built.store.root)
    parts = split([QueueRange(*built.queue, 0, _COUNT)], least)
    found = [read(log, part.queue, part.start, part.end) for part in parts]
    assert len(parts) == least
    assert list(itertools.chain(*found)) == written(range(_COUNT))


def test_an_empty_range_has_no_page(built: Built) -> None:
    """The position in the queue does not matter."""
    log = FileLog(built.store.root)
    assert [list(log.pages(built.queue, at, at, tags=None)) for at in (0, 5, _COUNT)] == [[], [], []]


@pytest.mark.usefixtures("limits")
def test_damage_is_reported_once_and_the_rest_is_read(built: Built) -> None:
    """It is reported by reason and queue offset: a damaged inner batch loses all its messages."""
    damaged = built.records[3]
    built.store.write_log(damaged.written.physical_offset + 88, b"\xff")
    pages = list(FileLog(built.store.root).pages(built.queue, 0, _COUNT, tags=None))
    told = [one for page in pages for one in page.damage]
    assert told == [f"BODY_CRC at queue offset {damaged.offsets.start}"]
    left = [offset for offset in range(_COUNT) if offset not in damaged.offsets]
    assert [message for page in pages for message in messages_of(page)] == written(left)


@pytest.mark.parametrize("tags", [None, "AB", "B"])
def test_damage_outside_the_range_is_not_reported(built: Built, tags: str | None) -> None:
    """Damage before the start and at the end is ignored, with and without tags."""
    log = FileLog(built.store.root)
    first, *_, last = built.records
    for record in (first, last):
        built.store.write_log(record.written.physical_offset + 88, b"\xff")
    inside = range(first.offsets.stop, last.offsets.start)
    expected = written(offset for offset in inside if tags is None or tag_of(offset) in tags)
    assert read(log, built.queue, inside.start, inside.stop, tags) == expected


def test_deleted_messages_are_an_error(store: BuiltStore) -> None:
    """The error has the queue's new beginning; from there on all messages are read."""
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
def test_a_store_that_vanishes_between_pages_is_an_error(
    built: Built, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """It is not a loss that may be skipped, whichever files are open, and no read waits for the store to return."""
    monkeypatch.setattr(file_log, "_BATCH_MESSAGES", 1)
    root = built.store.root
    pages = FileLog(root).pages(built.queue, 0, _COUNT, tags=None)
    next(pages)
    root.rename(root.with_name("away"))
    if left == "a mount point":
        root.mkdir()
    with pytest.raises(CorruptStoreError, match=f"no store at {root}: check that this machine mounts its file system"):
        list(pages)


def test_a_mount_point_without_a_store_is_an_error(built: Built) -> None:
    """The task's machine does not see the driver's file system."""
    root = built.store.root
    root.rename(root.with_name("away"))
    root.mkdir()
    with pytest.raises(CorruptStoreError, match=f"no store at {root}: check that this machine mounts its file system"):
        list(FileLog(root).pages(built.queue, 0, _COUNT, tags=None))


def test_messages_deleted_between_pages_are_an_error(store: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier pages stay valid."""
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
    """Nothing has expired: the queue's beginning is unchanged, so its messages are not merely old."""
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
def test_a_read_whose_queue_files_expire_is_retried(built: Built, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The queue then has new bounds, and usually the requested range is still within them."""
    failures = iter(range(times))

    def failing(*arguments: Any) -> PullResult:
        if next(failures, None) is not None:
            raise UnitsGoneError("the queue's file has expired")
        return pull(*arguments)

    monkeypatch.setattr(file_log, "pull", failing)
    assert read(FileLog(built.store.root), built.queue, 0, _COUNT) == written(range(_COUNT))


def test_queue_files_that_stay_missing_are_a_loss(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of retries is limited."""

    def failing(*arguments: Any) -> PullResult:
        raise UnitsGoneError("the queue's file has expired")

    monkeypatch.setattr(file_log, "pull", failing)
    with pytest.raises(OffsetTooSmallError):
        read(FileLog(built.store.root), built.queue, 0, _COUNT)


@pytest.mark.usefixtures("limits")
def test_a_hole_in_a_queue_is_skipped(store: BuiltStore) -> None:
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
    """The second of three files of fifty units is missing: the others' messages come, and the loss is damage."""
    append_singles(store, range(160))
    store.publish()
    (store.root / "consumequeue" / "orders" / "0" / f"{50 * 20:020d}").unlink()
    pages = list(FileLog(store.root).pages(_ORDERS, *span, tags=None))
    found = [offset for page in pages for offset in page.messages.column("queue_offset").to_pylist()]
    assert found == [n for n in range(*span) if not 50 <= n < 100]
    assert [damage for page in pages for damage in page.damage] == [f"QUEUE_FILE_MISSING at queue offset {lost}"]


@pytest.mark.parametrize("span", [(10, _COUNT + 2), (_COUNT, _COUNT + 2), (_COUNT + 1, _COUNT + 2)], ids=str)
def test_a_range_beyond_the_readable_end_is_an_error(built: Built, span: tuple[int, int]) -> None:
    """Messages that a stream had seen are missing: the store went back, or this machine sees an older state."""
    with pytest.raises(OffsetOutOfRangeError):
        list(FileLog(built.store.root).pages(built.queue, *span, tags=None))


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def end_by_sum(records: list[Record], start: int, end: int, max_bytes: int) -> int:
    """Return the end at which the records' sizes from *start* reach max_bytes; a partial record counts as a whole."""
    reached, left = start, max_bytes
    for offsets, (_, size, *_) in records:
        if offsets.stop > start and offsets.start < end and left >= 0:
            left -= size
            reached = min(offsets.stop, end) if left >= 0 else reached
    return reached


@pytest.mark.parametrize("at_once", [1, 2, 65_536])
def test_end_within_returns_the_offset_by_the_sum_of_sizes(
    built: Built, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Each start, end and number of records is tried, to the byte, with any number of units examined together."""
    monkeypatch.setattr(file_log, "_UNITS_AT_ONCE", at_once)
    log = FileLog(built.store.root)
    for start, end in _SPANS:
        sizes = [record.written.size for record in built.records if record.offsets.stop > start]
        for total in [0, *itertools.accumulate(sizes)]:
            for max_bytes in range(max(0, total - 1), total + 2):
                expected = end_by_sum(built.records, start, end, max_bytes)
                assert log.end_within(built.queue, start, end, max_bytes) == expected


def test_a_missing_queue_file_counts_no_bytes(store: BuiltStore) -> None:
    """The messages after it count as if they came next."""
    records = append_singles(store, range(160))
    store.publish()
    (store.root / "consumequeue" / "orders" / "0" / f"{50 * 20:020d}").unlink()
    log, left = FileLog(store.root), records[:50] + records[100:]
    total = sum(record.written.size for record in left)
    assert log.end_within(_ORDERS, 0, 160, total) == 160
    assert log.end_within(_ORDERS, 0, 160, total - 1) == 159
    assert log.end_within(_ORDERS, 0, 160, sum(record.written.size for record in left[:60])) == 110
    assert log.end_within(_ORDERS, 60, 70, 1_000_000) == 70


def test_a_hole_counts_no_bytes(store: BuiltStore) -> None:
    """A stream must pass it, and must not take it for a message."""
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
def test_messages_in_a_missing_queue_file_count_no_bytes(store: BuiltStore, end: int, expected: int) -> None:
    """However few bytes are left, the range reaches the file after it."""
    append_singles(store, range(160))
    store.publish()
    (store.root / "consumequeue" / "orders" / "0" / f"{50 * 20:020d}").unlink()
    assert FileLog(store.root).end_within(_ORDERS, 60, end, 1) == expected


# ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def watermarks(monkeypatch: pytest.MonkeyPatch, *seen: tuple[int, int]) -> list[Watermark]:
    """Let looks return these (visible, committed) pairs in turn, then the last one; return the given answers."""
    answered: list[Watermark] = []

    def look(reader: StoreReader) -> Watermark:
        reached, committed = seen[min(len(answered), len(seen) - 1)]
        answered.append(Watermark(1, reached, 0, committed))
        return answered[-1]

    monkeypatch.setattr(StoreReader, "watermark", look)
    monkeypatch.setattr(visible, "_LOOK_S", 0.0)
    return answered


def test_settle_waits_for_messages_committed_before_the_call(
    store: BuiltStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for later commits of a busy writer."""
    answered = watermarks(monkeypatch, (10, 30), (20, 50), (29, 60), (30, 90), (40, 99))
    FileLog(store.root).settle()
    assert answered[-1].physical_offset == 30


def test_settle_ends_at_its_limit(store: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped pipeline must not block a query for ever."""
    monkeypatch.setattr(file_log, "SETTLE_S", 0.01)
    answered = watermarks(monkeypatch, (10, 30))
    FileLog(store.root).settle()
    assert answered[-1].physical_offset == 10


def test_settle_does_not_wait_if_everything_is_readable(store: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes a store without a writer."""
    monkeypatch.setattr(visible, "_LOOK_S", 1000.0)
    append_singles(store, range(3))
    store.publish()
    FileLog(store.root).settle()
