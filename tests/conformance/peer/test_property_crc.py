"""AppendPropCRCTest: a record that carries its own CRC is checked by it (docs/format.md §2)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import properties, row_of_records
from tidemark.format.check import Checker, CheckResult, Crc
from tidemark.format.dispatch_request import Fault, Outcome

SEVEN = {"TAGS": "TagA", "KEYS": "k1 k2", "a": "1", "b": "2", "c": "3", "UNIQ_KEY": "u", "WAIT": "true"}
SINGLES = row_of_records({"properties": properties(SEVEN), "property_crc": True} for _ in range(10))
BATCH = row_of_records(
    {"body": b"body%d" % i, "properties": properties({"TAGS": "abc"}), "queue_offset": i, "property_crc": True}
    for i in range(10)
)


def check(data: bytes | bytearray, crc: Crc = Crc.STOPS) -> CheckResult:
    return Checker(crc=crc).check(np.frombuffer(bytes(data), np.uint8), base_offset=0)


def damaged_in_its_properties(data: bytes) -> bytearray:
    """Change a byte in the middle of the last record's properties."""
    row = check(data).requests[-1]
    changed = bytearray(data)
    changed[int(row["properties_at"]) + (int(row["properties_length"]) - 20) // 2] ^= 1
    return changed


@pytest.mark.parametrize("data", [SINGLES, BATCH], ids=["PC1", "PC2"])
def test_pc1_pc2_only_the_record_with_a_damaged_property_fails_the_check(data: bytes) -> None:
    """Of ten right ones nine stay, and the position and reason of the tenth are reported."""
    assert (check(data).outcome, len(check(data).requests)) == (Outcome.END, 10)
    last = int(check(data).requests["physical_offset"][-1])
    result = check(damaged_in_its_properties(data))
    assert (result.outcome, result.fault, result.end_at) == (Outcome.BAD, Fault.PROPERTY_CRC, last)
    assert len(result.requests) == 9
    marked = check(damaged_in_its_properties(data), Crc.MARKS)
    assert marked.requests["fault"].tolist() == [Fault.NONE] * 9 + [Fault.PROPERTY_CRC]


def test_pc1_every_bit_before_the_crc_is_covered() -> None:
    """Head, body, topic and properties are covered: no change of one bit passes, whatever the reported fault."""
    data = row_of_records([{"properties": properties(SEVEN), "property_crc": True}])
    for at in range(len(data) - 20):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            assert check(changed).outcome is not Outcome.END, (at, bit)


def test_pc1_a_wrong_digit_of_the_crc_is_a_fault() -> None:
    """The CRC itself may be damaged; letters are no digits."""
    for at in range(len(SINGLES) - 11, len(SINGLES) - 1):
        for byte in (SINGLES[at] ^ 1, ord("x")):
            changed = bytearray(SINGLES)
            changed[at] = byte
            assert check(changed).fault is Fault.PROPERTY_CRC


def test_md8_the_crc_has_ten_reversed_digits_padded_with_zeros() -> None:
    """The cases are the spec's example, and Tidemark's first record whose CRC has fewer than ten digits."""
    vector = bytes.fromhex(
        "0000008fdaa320a777d18982000000010000000000000000000000070000000000000000000000000000018bcfe56800"
        "7f0000010000d4310000018bcfe5687bc0a8074100002a9f0000000000000000000000000000000548656c6c6f09546f"
        "706963546573740026544147530154616741024b455953014b31025f5f435243333223013237333434313238313102"
    )
    assert vector.endswith(b"__CRC32#\x012734412811\x02")
    records = (row_of_records([{"body": b"%d" % n, "property_crc": True}]) for n in range(1000))
    short = next(record for record in records if record[-2:] == b"0\x02")
    for record in (vector, short):
        assert check(record).outcome is Outcome.END
        assert check(record[:-2] + b"1\x02" if record is short else record[:-2] + b"2\x02").fault is Fault.PROPERTY_CRC
