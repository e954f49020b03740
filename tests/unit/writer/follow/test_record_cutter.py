from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.writer.follow.ha_link import HaFrame
from services.writer.follow.record_cutter import Cut, RecordCutter
from tests.builders import blank_bytes, record_bytes
from tidemark.errors import BrokerUnreachableError, ReplicaDivergedError

FILE_BYTES = 4096


def log_of(count: int) -> tuple[bytes, list[int]]:
    """Return a log of several files with *count* records, and the ends of the records."""
    log, ends = b"", []
    for number in range(count):
        record = record_bytes(topic=b"t%d" % (number % 3), body=b"x" * (number * 53 % 700), physical_offset=len(log))
        left = FILE_BYTES - len(log) % FILE_BYTES
        if len(record) + 8 > left:
            log += blank_bytes(left).ljust(left, b"\0")
            record = record_bytes(topic=b"t%d" % (number % 3), body=b"x", physical_offset=len(log))
        log += record
        ends.append(len(log))
    return log, ends


LOG, ENDS = log_of(60)


def frames(start: int, data: bytes, size: int) -> list[HaFrame]:
    return [HaFrame(start + at, data[at : at + size]) for at in range(0, len(data), size)]


@given(begin=st.sampled_from([0, *ENDS[:-1]]), overlap=st.integers(0, 900), size=st.integers(1, 3000))
def test_bytes_cut_anywhere_become_whole_records(begin: int, overlap: int, size: int) -> None:
    from_log = max(1, begin - overlap) if begin else 0
    cutter = RecordCutter(begin, LOG[from_log:begin], FILE_BYTES)
    assert cutter.first == (from_log or 1)
    cuts: list[Cut] = []
    for frame in frames(cutter.first, LOG[cutter.first :], size):
        cuts += cutter.add([frame])
    assert b"".join(cut.data for cut in cuts) == LOG[begin:]
    edges = {*ENDS, *range(0, len(LOG), FILE_BYTES)}
    assert all(cut.end in edges for cut in cuts)
    assert all(cut.start // FILE_BYTES == (cut.end - 1) // FILE_BYTES for cut in cuts), "no cut crosses a file's end"


def test_a_cut_names_its_topics_and_its_newest_time() -> None:
    (cut,) = RecordCutter(0, b"", FILE_BYTES).add([HaFrame(1, LOG[1 : ENDS[1]])])
    assert cut.topics == {"t0", "t1"}
    assert cut.store_timestamp > 0
    assert cut.damaged == 0


def test_a_body_that_fails_its_check_is_copied_and_counted() -> None:
    record = record_bytes(body=b"hello", body_crc=7)
    (cut,) = RecordCutter(0, b"", FILE_BYTES).add([HaFrame(1, record[1:])])
    assert (cut.data, cut.damaged) == (record, 1)


def test_other_bytes_in_the_overlap_are_a_divergence() -> None:
    end = ENDS[5]
    cutter = RecordCutter(end, LOG[1:end], FILE_BYTES)
    cutter.add([HaFrame(1, LOG[1:50])])
    with pytest.raises(ReplicaDivergedError, match="at physical offset 60"):
        cutter.add([HaFrame(50, LOG[50:60] + bytes([LOG[60] ^ 1]) + LOG[61:80])])


def test_a_gap_ends_the_connection() -> None:
    with pytest.raises(BrokerUnreachableError, match="from 2, but 1 was to come"):
        RecordCutter(0, b"", FILE_BYTES).add([HaFrame(2, LOG[2:])])


@pytest.mark.parametrize("damaged", [bytes(200), LOG[:4] + b"\0\0\0\0" + LOG[8:200]])
def test_a_record_that_is_none_is_named(damaged: bytes) -> None:
    cutter = RecordCutter(0, b"", FILE_BYTES)
    assert cutter.add([HaFrame(1, damaged[1:])]) == []
    assert "at physical offset 0" in str(cutter.damage)


def test_records_before_a_damaged_one_are_taken() -> None:
    cutter = RecordCutter(0, b"", FILE_BYTES)
    (cut,) = cutter.add([HaFrame(1, LOG[1 : ENDS[2]] + bytes(100))])
    assert cut.data == LOG[: ENDS[2]]
    assert f"at physical offset {ENDS[2]}" in str(cutter.damage)
