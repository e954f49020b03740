"""Results of the walk for single right and wrong bytes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from tests import builders
from tests.builders import BODY_OF_CRC_0, MAGIC_V2, blank_bytes, properties, record_bytes, row_of_records
from tidemark.format.check import Checker, CheckResult, Crc, find_next_record
from tidemark.format.dispatch_request import Fault, Outcome


def check(data: bytes, *, crc: Crc = Crc.STOPS, base_offset: int = 0, file_end: int | None = None) -> CheckResult:
    return Checker(crc=crc).check(np.frombuffer(data, np.uint8), base_offset=base_offset, file_end=file_end)


def row_of(**fields: Any) -> np.void:
    result = check(record_bytes(**fields))
    assert result.outcome is Outcome.END
    row: np.void = result.requests[0]
    return row


def ends(result: CheckResult) -> tuple[Outcome, Fault, int]:
    return result.outcome, result.fault, result.end_at


def patched(data: bytes, at: int, value: int, form: str = ">i") -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


A = record_bytes(properties=properties({"TAGS": "TagA"}))


def test_an_empty_buffer_ends_the_walk() -> None:
    """An empty buffer ends at a record's edge."""
    assert ends(check(b"")) == (Outcome.END, Fault.NONE, 0)


def test_zero_bytes_are_not_a_record() -> None:
    """A new log has zeros after its end."""
    assert ends(check(A + bytes(100))) == (Outcome.BAD, Fault.MAGIC, len(A))


def test_a_blank_record_ends_the_file() -> None:
    """The walk ends at the blank record, whatever follows its eight bytes."""
    data = A + blank_bytes(100) + b"\xff" * 92
    assert ends(check(data, file_end=len(data))) == (Outcome.BLANK, Fault.NONE, len(A))


@pytest.mark.parametrize("told", [0, 8, 99, 101, -1])
def test_a_blank_record_that_misses_the_files_end_is_refused(told: int) -> None:
    """Its length must lead exactly to the file's end; without a known end this cannot be checked."""
    data = blank_bytes(told) + bytes(92)
    assert ends(check(data, file_end=100)) == (Outcome.BAD, Fault.LENGTH, 0)
    assert check(data).outcome is Outcome.BLANK


def test_a_record_beyond_the_files_end_is_bad() -> None:
    """No record spans two files, even if the buffer continues."""
    assert ends(check(A, file_end=len(A) - 1)) == (Outcome.BAD, Fault.LENGTH, 0)
    assert check(A, file_end=len(A)).outcome is Outcome.END


@pytest.mark.parametrize("left", range(1, 8))
def test_a_rest_shorter_than_a_blank_record_is_bad(left: int) -> None:
    """No record can start there: waiting for more bytes would never end."""
    assert ends(check(A + bytes(left), file_end=len(A) + left)) == (Outcome.BAD, Fault.MAGIC, len(A))
    assert check(A + bytes(left)).outcome is Outcome.PARTIAL


def test_a_record_with_another_physical_offset_ends_the_walk() -> None:
    """Magic, lengths and CRC are right, but its PHYSICALOFFSET is another position."""
    stale = record_bytes(physical_offset=len(A) + 1)
    assert ends(check(A + stale)) == (Outcome.BAD, Fault.POSITION, len(A))


def test_consecutive_records_are_walked_from_a_base_offset() -> None:
    """Each position includes the base offset."""
    data = row_of_records([{"queue_offset": i} for i in range(5)], base_offset=1 << 40)
    result = check(data, base_offset=1 << 40)
    assert (ends(result), result.records) == ((Outcome.END, Fault.NONE, len(data)), 5)
    assert result.requests["queue_offset"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("total", [-1, 0, 90, -(1 << 31), 92, 121, 123, (1 << 31) - 1])
def test_a_wrong_total_size_is_a_length_fault(total: int) -> None:
    """A value that is too small is bad; if it is too large, more bytes may follow unless the file ends before."""
    data = patched(A, 0, total)
    outcome = Outcome.PARTIAL if total > len(A) else Outcome.BAD
    assert ends(check(data)) == (outcome, Fault.LENGTH, 0)
    assert ends(check(data, file_end=len(A))) == (Outcome.BAD, Fault.LENGTH, 0)


@pytest.mark.parametrize("length", [-1, -(1 << 31), 4, 6, 1000, (1 << 31) - 1])
def test_a_wrong_body_length_is_a_length_fault(length: int) -> None:
    """The sum of the lengths must match."""
    assert ends(check(patched(A, 84, length))) == (Outcome.BAD, Fault.LENGTH, 0)


@pytest.mark.parametrize("length", [-1, -128, 8, 10, 127])
def test_a_wrong_topic_length_is_a_length_fault(length: int) -> None:
    """V1 has one signed byte."""
    assert ends(check(patched(A, 93, length, ">b"))) == (Outcome.BAD, Fault.LENGTH, 0)


@pytest.mark.parametrize("length", [-1, -32768, 9, 11, 32767])
def test_a_wrong_properties_length_is_a_length_fault(length: int) -> None:
    """It has two signed bytes."""
    assert ends(check(patched(A, 103, length, ">h"))) == (Outcome.BAD, Fault.LENGTH, 0)


def test_a_topic_of_128_bytes_needs_v2() -> None:
    """RocketMQ reads V1's length byte as signed, so such a record is unreadable (docs/format.md §2)."""
    assert ends(check(record_bytes(topic=b"t" * 128))) == (Outcome.BAD, Fault.LENGTH, 0)
    assert check(record_bytes(topic=b"t" * 128, magic=MAGIC_V2)).records == 1


def test_the_longest_v2_topic_is_walked_in_every_shard() -> None:
    """32,767 bytes of topic fit into the walk's name buffer."""
    data = np.frombuffer(record_bytes(topic=b"t" * 32_767, magic=MAGIC_V2), np.uint8)
    found = [len(Checker(shard=shard, shards=3).check(data, base_offset=0).requests) for shard in range(3)]
    assert sorted(found) == [0, 0, 1]


WRONG_BODY = patched(A, 88, 0x4A656C6C)


def test_a_wrong_body_crc_ends_or_marks_as_configured() -> None:
    """There are three ways to treat a CRC."""
    data = WRONG_BODY + record_bytes(physical_offset=len(A))
    assert ends(check(data)) == (Outcome.BAD, Fault.BODY_CRC, 0)
    marked = check(data, crc=Crc.MARKS)
    assert marked.requests["fault"].tolist() == [Fault.BODY_CRC, Fault.NONE]
    assert check(data, crc=Crc.OFF).requests["fault"].tolist() == [0, 0]


def test_a_body_with_crc_0_is_accepted() -> None:
    """Zero is a valid CRC; it does not mean that the CRC was not computed."""
    assert check(record_bytes(body=BODY_OF_CRC_0, body_crc=0)).records == 1
    assert check(record_bytes(body=b"Hello", body_crc=0)).fault is Fault.BODY_CRC


@pytest.mark.parametrize("crc", [0, 1, -1])
def test_the_crc_of_an_empty_body_is_ignored(crc: int) -> None:
    """RocketMQ does the same (docs/format.md §13)."""
    assert check(record_bytes(body=b"", body_crc=crc)).records == 1


def test_a_crc_with_its_highest_bit_set_is_wrong() -> None:
    """RocketMQ stores it with that bit cleared."""
    assert check(record_bytes(body=b"Hello", body_crc=0x77D18982 - (1 << 31))).fault is Fault.BODY_CRC


def test_a_full_row_table_ends_the_walk_resumably() -> None:
    """The outcome is FULL at the first record without a row; the walk can continue from there."""
    data = row_of_records([{"queue_offset": i} for i in range(5)])
    buffer = np.frombuffer(data, np.uint8)
    checker = Checker(max_rows=2)
    at, found = 0, []
    for outcome in (Outcome.FULL, Outcome.FULL, Outcome.END):
        result = checker.check(buffer, base_offset=0, start=at)
        assert result.outcome is outcome
        found += result.requests["queue_offset"].tolist()
        at = result.end_at
    assert found == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("level", "delay_s"), [("1", 1), ("4", 30), ("18", 7200), ("19", 7200), ("2147483647", 7200)])
def test_the_tags_code_of_a_delayed_message_is_its_delivery_time(level: str, delay_s: int) -> None:
    """This applies in the schedule topic (docs/format.md §2); levels above 18 count as 18."""
    named = properties({"DELAY": level, "TAGS": "TagA"})
    assert row_of(topic=b"SCHEDULE_TOPIC_XXXX", properties=named)["tags_code"] == builders.STORE_MS + 1000 * delay_s
    assert row_of(topic=b"SCHEDULE_TOPIC_XXXY", properties=named)["tags_code"] == 2598919


@pytest.mark.parametrize("level", ["0", "-1"])
def test_a_message_without_a_delay_level_keeps_its_tags_code(level: str) -> None:
    """This holds in the schedule topic too."""
    named = properties({"DELAY": level, "TAGS": "TagA"})
    assert row_of(topic=b"SCHEDULE_TOPIC_XXXX", properties=named)["tags_code"] == 2598919


@pytest.mark.parametrize(
    ("topic", "named"),
    [
        (b"T", {"INNER_NUM": "x", "INNER_BASE": "0"}),
        (b"T", {"INNER_NUM": "32768", "INNER_BASE": "0"}),
        (b"T", {"INNER_NUM": "1", "INNER_BASE": "9223372036854775808"}),
        (b"SCHEDULE_TOPIC_XXXX", {"DELAY": "soon"}),
        (b"SCHEDULE_TOPIC_XXXX", {"DELAY": "2147483648"}),
    ],
)
def test_a_numeric_property_that_is_not_a_number_is_a_fault(topic: bytes, named: dict[str, str]) -> None:
    """RocketMQ's parser would throw (docs/format.md §13)."""
    assert ends(check(record_bytes(topic=topic, properties=properties(named)))) == (Outcome.BAD, Fault.NUMBER, 0)


@pytest.mark.parametrize("named", [{"INNER_NUM": "x"}, {"INNER_BASE": "x"}, {"DELAY": "x"}])
def test_an_unused_numeric_property_may_have_any_text(named: dict[str, str]) -> None:
    """INNER_NUM and INNER_BASE count only together, DELAY only in the schedule topic."""
    row = row_of(queue_offset=9, properties=properties(named))
    assert (row["base_offset"], row["batch_size"]) == (9, 1)


def test_the_tags_hash_counts_utf16_units() -> None:
    """Java's hash counts UTF-16 units."""
    h = 0
    for unit in struct.unpack(">3H", "é\U0001f600".encode("utf-16-be")):
        h = (31 * h + unit) & 0xFFFFFFFF
    assert row_of(properties=properties({"TAGS": "é\U0001f600"}))["tags_code"] == h - (h >> 31 << 32)


def test_the_store_time_is_read_after_ipv6_hosts() -> None:
    """All four kinds of heads are read."""
    for born in (builders.BORN_HOST, builders.BORN_HOST_V6):
        for store in (builders.STORE_HOST, builders.STORE_HOST_V6):
            row = row_of(born_host=born, store_host=store, store_timestamp=77, body=b"body")
            assert (row["store_timestamp"], row["body_length"]) == (77, 4)
            assert row["body_at"] == 72 + len(born) + len(store)


def test_find_next_record_skips_damage() -> None:
    """A record with a wrong body is not a valid restart position."""
    behind = record_bytes(physical_offset=len(A))
    assert find_next_record(np.frombuffer(WRONG_BODY + behind, np.uint8), base_offset=0) == len(A)


def test_find_next_record_finds_the_blank_record() -> None:
    """It must reach the end, and the end must be known."""
    data = np.frombuffer(bytes(50) + blank_bytes(50) + bytes(42), np.uint8)
    assert find_next_record(data, base_offset=0, file_end=100) == 50
    assert find_next_record(data, base_offset=0, file_end=101) is None
    assert find_next_record(data, base_offset=0) is None


def test_find_next_record_needs_the_whole_record() -> None:
    """A record that the buffer's end cuts off is not found."""
    data = np.frombuffer(bytes(7) + record_bytes(physical_offset=7), np.uint8)
    assert find_next_record(data, base_offset=0) == 7
    assert find_next_record(data[:-1], base_offset=0) is None


def test_a_negative_base_offset_is_refused() -> None:
    """It is a bug of the caller."""
    with pytest.raises(ValueError, match="base_offset"):
        check(b"", base_offset=-1)


def test_a_strided_buffer_is_refused() -> None:
    """CRCs are computed from addresses."""
    with pytest.raises(ValueError, match="of a contiguous buffer"):
        Checker().check(np.zeros(200, np.uint8)[::2], base_offset=0)
