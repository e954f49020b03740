"""Results of a pull, by Tidemark's rules."""

from __future__ import annotations

import pytest

from tests.built_store import BuiltStore, java_hash
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.pull import PullRequest, PullResult, PullStatus, pull
from tidemark.read.store_reader import StoreReader
from tidemark.read.tag_filter import TagFilter


def pulled(
    built: BuiltStore,
    topic: str,
    offset: int,
    *,
    max_messages: int = 100,
    max_bytes: int = 1 << 20,
    tags: str | None = None,
    whole_records: bool = False,
    max_scanned_units: int = 1000,
) -> PullResult:
    reader = StoreReader(built.root)
    queue = reader.queue(topic, 0)
    tag_filter = None if tags is None else TagFilter.parse([tags])
    request = PullRequest(
        offset, max_messages, max_bytes, tag_filter, whole_records, max_scanned_units=max_scanned_units
    )
    return pull(queue, reader.log, reader.bounds(queue, reader.watermark()), request)


def bodies(result: PullResult) -> list[str]:
    return [str(row["body"]) for part in result.parts for row in message_rows(part, BodyEncoding.AUTO)]


def offsets(result: PullResult) -> list[int]:
    return [int(offset) for part in result.parts for offset in part.messages["queue_offset"]]


@pytest.fixture
def simple(built: BuiltStore) -> BuiltStore:
    """Write twelve messages m0 … m11 with tags A, B, C in turn; the last two are not visible."""
    for number in range(12):
        if number == 10:
            built.publish()
        built.append("orders", f"m{number}".encode(), {"TAGS": "ABC"[number % 3]})
    return built


@pytest.fixture
def batched(built: BuiltStore) -> BuiltStore:
    """Write inner batches of 4, 1 and 5 messages, 0 … 9, with tags A, B, C in turn; message 5 is a single one."""
    elements = [(f"m{number}".encode(), {"TAGS": "ABC"[number % 3]}, 0) for number in range(10)]
    built.append_batch("batches", elements[:4])
    built.append_batch("batches", elements[4:5])
    built.append("batches", b"m5", {"TAGS": "C"})
    built.append_batch("batches", elements[6:])
    built.publish()
    built.append_batch("batches", elements)
    return built


@pytest.fixture(params=["orders", "batches"])
def topic(request: pytest.FixtureRequest) -> str:
    """Return a topic with m0 … m9 visible, and more above the watermark."""
    request.getfixturevalue({"orders": "simple", "batches": "batched"}[request.param])
    return str(request.param)


@pytest.mark.parametrize("max_messages", [1, 2, 3, 7, 100])
def test_a_pull_returns_exactly_the_requested_offsets(built: BuiltStore, topic: str, max_messages: int) -> None:
    """Nothing is below the requested offset, beyond max_messages, or above the watermark."""
    for offset in range(10):
        result = pulled(built, topic, offset, max_messages=max_messages)
        expected = list(range(offset, min(10, offset + max_messages)))
        assert (result.status, offsets(result)) == (PullStatus.FOUND, expected)
        assert bodies(result) == [f"m{number}" for number in expected]
        assert (result.next_offset, result.message_count) == (expected[-1] + 1, len(expected))
        assert result.skipped == []


@pytest.mark.parametrize("tags", ["A", "B || C", "C||nope"])
@pytest.mark.parametrize("max_messages", [1, 2, 100])
def test_tags_are_matched_per_message(built: BuiltStore, topic: str, tags: str, max_messages: int) -> None:
    """Following next_offset from 0 returns every matching message once, also within an inner batch."""
    wanted = [number for number in range(10) if "ABC"[number % 3] in tags]
    found: list[int] = []
    offset = 0
    while offset < 10:
        result = pulled(built, topic, offset, max_messages=max_messages, tags=tags)
        assert len(offsets(result)) <= max_messages
        assert result.next_offset > offset
        found += offsets(result)
        offset = result.next_offset
    assert found == wanted


def test_tags_with_equal_hashes_are_distinguished(built: BuiltStore) -> None:
    """Aa and BB have one hash: the unit passes, the message does not."""
    assert java_hash("Aa") == java_hash("BB")
    for tag in ("Aa", "BB", "Aa"):
        built.append("orders", tag.encode(), {"TAGS": tag})
    built.publish()
    result = pulled(built, "orders", 0, tags="BB")
    assert (bodies(result), result.next_offset) == (["BB"], 3)


def test_a_filtered_pull_without_matches_advances_next_offset(simple: BuiltStore) -> None:
    """Nothing matches: NO_MATCHED_MESSAGE, and next_offset is past the examined units."""
    result = pulled(simple, "orders", 2, tags="nope")
    assert (result.status, result.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 10)


def test_max_bytes_limits_records_except_the_first(built: BuiltStore, topic: str) -> None:
    """One byte is enough for a record; two records need both their sizes."""
    result = pulled(built, topic, 0, max_bytes=1)
    assert offsets(result) == (list(range(4)) if topic == "batches" else [0])
    assert result.next_offset == len(offsets(result))
    size = int(result.parts[0].records.rows["message_size"][0])
    again = pulled(built, topic, 0, max_bytes=size)
    assert offsets(again) == offsets(result)


@pytest.mark.parametrize("sizes", [[9000] + [10] * 200, [10] * 200 + [9000] * 3, [10, 9000] * 20])
def test_varying_record_sizes_do_not_end_a_pull_early(built: BuiltStore, sizes: list[int]) -> None:
    """The number of units that are examined together follows from the next one's size; the result does not."""
    records = [built.append("orders", bytes(size)) for size in sizes]
    built.publish()
    for max_bytes in (1, 5000, 30_000, 1 << 20):
        ends = [sum(record.size for record in records[: n + 1]) for n in range(len(records))]
        fitting = max(sum(end <= max_bytes for end in ends), 1)
        result = pulled(built, "orders", 0, max_messages=1000, max_bytes=max_bytes)
        assert (offsets(result), result.next_offset) == (list(range(fitting)), fitting)


def test_whole_records_are_never_cut(batched: BuiltStore) -> None:
    """An inner batch is returned whole as stored: the first one always, further ones while they fit."""
    for max_messages, expected in ((1, 4), (4, 4), (5, 5), (6, 6), (9, 6), (10, 10)):
        result = pulled(batched, "batches", 2, max_messages=max_messages, whole_records=True)
        assert (result.message_count, result.next_offset) == (expected, expected)


@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [(10, PullStatus.OFFSET_OVERFLOW_ONE, 10), (11, PullStatus.OFFSET_OVERFLOW_BADLY, 10)],
)
def test_a_pull_beyond_the_visible_end_returns_no_message(
    simple: BuiltStore, offset: int, status: PullStatus, next_offset: int
) -> None:
    """The files already contain more."""
    result = pulled(simple, "orders", offset)
    assert (result.status, result.next_offset, result.parts) == (status, next_offset, [])


def test_a_pull_from_an_empty_queue_returns_no_message(built: BuiltStore) -> None:
    """No message is returned, whatever the offset."""
    assert pulled(built, "orders", 5).status is PullStatus.NO_MESSAGE_IN_QUEUE
    assert pulled(built, "batches", 0).status is PullStatus.NO_MESSAGE_IN_QUEUE


def test_a_pull_below_the_minimum_returns_the_minimum(built: BuiltStore) -> None:
    """The first log file was deleted."""
    for _ in range(30):
        built.append("orders", bytes(4000))
    built.publish()
    (built.root / "commitlog" / f"{0:020d}").unlink()
    minimum = 65_536 // 4104
    result = pulled(built, "orders", 0)
    assert result.status is PullStatus.OFFSET_TOO_SMALL
    assert result.next_offset == result.bounds.min_offset
    assert abs(result.next_offset - minimum) <= 1
    assert pulled(built, "orders", result.next_offset).status is PullStatus.FOUND


@pytest.mark.parametrize(
    ("at", "byte", "reason"),
    [
        (88, 0xFF, "BODY_CRC"),
        (4, 0x00, "MAGIC"),
        (35, 0x77, "POSITION"),
        (0, 0x01, "LENGTH"),
        (15, 0x09, "OTHER_QUEUE"),
    ],
    ids=["body", "magic", "position", "size", "queue"],
)
def test_a_damaged_record_is_skipped_and_reported(built: BuiltStore, at: int, byte: int, reason: str) -> None:
    """Of three records the middle one is damaged: two are returned, and its position and reason are reported."""
    records = [built.append("orders", f"m{number}".encode()) for number in range(3)]
    built.publish()
    built.write_log(records[1].physical_offset + at, bytes([byte]))
    result = pulled(built, "orders", 0)
    assert bodies(result) == ["m0", "m2"]
    assert [skipped[:3] for skipped in result.skipped] == [(records[1].physical_offset, 1, reason)]
    assert (result.next_offset, result.message_count) == (3, 2)
    stored = pulled(built, "orders", 0, whole_records=True)
    raw = bytes(stored.parts[0].records.stored_bytes(stored.parts[0].chosen))
    assert len(raw) == records[0].size + records[2].size
    assert stored.message_count == 2


def test_a_pull_at_damaged_records_continues_after_them(built: BuiltStore) -> None:
    """max_messages 1 at a damaged record returns the next valid one."""
    records = [built.append("orders", f"m{number}".encode()) for number in range(3)]
    built.publish()
    for record in records[:2]:
        built.write_log(record.physical_offset + 88, b"\xff")
    result = pulled(built, "orders", 0, max_messages=1)
    assert (bodies(result), result.next_offset, len(result.skipped)) == (["m2"], 3, 2)


def test_an_invalid_inner_batch_is_returned_as_one_message(built: BuiltStore) -> None:
    """A body that is no wire batch, with inner-batch flags, is one message with its flags, as it is stored."""
    built.append("batches", b"no wire batch", sys_flag=0xC0)
    built.publish()
    result = pulled(built, "batches", 0)
    row = message_rows(result.parts[0], BodyEncoding.AUTO)[0]
    assert (row["body"], row["sys_flag"]) == ("no wire batch", 0xC0)


def test_a_hole_in_a_queue_is_skipped(built: BuiltStore) -> None:
    """Pre-blank units give no message, and the cursor passes them."""
    built.append("orders", b"m0")
    built.write_units("orders", 0, 1, bytes(8) + b"\x7f\xff\xff\xff" + bytes(8))
    built.next["orders", 0] = 2
    built.append("orders", b"m2")
    built.publish()
    result = pulled(built, "orders", 0)
    assert (bodies(result), result.next_offset) == (["m0", "m2"], 3)
    assert bodies(pulled(built, "orders", 1, max_messages=1)) == ["m2"]
