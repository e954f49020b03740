from __future__ import annotations

import pytest

from services.writer.replication.sound_copy import Place, is_sound, sound_copy
from tests.builders import blank_bytes, properties, row_of_records

BASE, FILE_END = 1 << 20, 2 << 20
BODY = b"b" * 400


def records() -> bytes:
    fields = {"topic": b"orders", "body": BODY, "properties": properties({"KEYS": "k1", "TAGS": "A"})}
    return row_of_records([fields, fields, fields], base_offset=BASE)


GOOD = records()
SIZE = len(GOOD) // 3
SECOND = Place(BASE, BASE + SIZE, BASE + 2 * SIZE, FILE_END)
IN_BODY = GOOD.index(BODY, SIZE) + 7
IN_PROPERTIES = GOOD.index(b"KEYS", SIZE) + 6


def flipped(at: int, bit: int = 1) -> bytes:
    return GOOD[:at] + bytes([GOOD[at] ^ bit]) + GOOD[at + 1 :]


def test_a_body_that_fails_its_check_is_replaced_by_one_that_passes() -> None:
    assert not is_sound(flipped(IN_BODY), SECOND)
    assert sound_copy(flipped(IN_BODY), {"b": GOOD}, SECOND) == "b"


@pytest.mark.parametrize("at", [IN_BODY, IN_PROPERTIES, SIZE, SIZE + 5])
def test_what_the_others_have_wrong_is_not_taken_from_them(at: int) -> None:
    assert sound_copy(GOOD, {"b": flipped(at)}, SECOND) is None


def test_of_three_members_two_decide_on_bytes_without_a_checksum() -> None:
    assert is_sound(flipped(IN_PROPERTIES), SECOND)
    assert sound_copy(flipped(IN_PROPERTIES), {"b": GOOD}, SECOND) is None, "two members cannot decide"
    assert sound_copy(flipped(IN_PROPERTIES), {"b": GOOD, "c": GOOD}, SECOND) == "b"
    assert sound_copy(GOOD, {"b": flipped(IN_PROPERTIES), "c": GOOD}, SECOND) is None


def test_members_that_contradict_each_other_replace_nothing() -> None:
    others = {"b": flipped(IN_PROPERTIES), "c": flipped(IN_PROPERTIES, 2)}
    assert sound_copy(flipped(IN_BODY), others, SECOND) is None
    assert sound_copy(flipped(IN_BODY), {**others, "d": flipped(IN_PROPERTIES)}, SECOND) == "b"


def test_a_copy_that_is_damaged_elsewhere_in_the_place_is_not_taken() -> None:
    assert sound_copy(flipped(IN_BODY), {"b": flipped(IN_BODY + 9)}, SECOND) is None
    assert sound_copy(flipped(IN_BODY), {"b": flipped(IN_BODY + 9), "c": GOOD}, SECOND) == "c"


def test_a_damaged_size_hides_no_record() -> None:
    assert sound_copy(flipped(SIZE + 3), {"b": GOOD}, SECOND) == "b"


def test_a_shorter_copy_is_not_taken() -> None:
    assert sound_copy(flipped(IN_BODY), {"b": GOOD[: SIZE + 100]}, SECOND) is None


def test_a_place_may_end_with_the_file() -> None:
    file_end = BASE + len(GOOD) + 40
    place = Place(BASE, BASE + 2 * SIZE, file_end, file_end)
    good = GOOD + blank_bytes(40)
    damaged = bytearray(good)
    damaged[2 * SIZE + 3] ^= 1
    assert is_sound(good, place)
    assert sound_copy(bytes(damaged), {"b": good}, place) == "b"
