"""Message ids: those of positions, and those that clients make."""

from __future__ import annotations

import datetime
import os
import threading
import time
from collections.abc import Callable

import pytest

from tidemark.format.message_id import UniqueKeys, decode_message_id, decode_offset_message_id, decode_unique_key

SetClock = Callable[[datetime.datetime], int]
MONDAY = datetime.datetime(2025, 11, 17, 12, 0, 0)  # noqa: DTZ001 - RocketMQ counts in local time


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Return a function that sets the clock for new keys and returns the time in epoch milliseconds."""

    def set_to(moment: datetime.datetime) -> int:
        monkeypatch.setattr(time, "time", moment.timestamp)
        return int(moment.timestamp() * 1000)

    return set_to


def test_a_unique_key_encodes_address_pid_time_and_counter(set_clock: SetClock) -> None:
    """The layout is that of docs/format.md §2: ip, pid, tag, milliseconds of the local month, counter."""
    now_ms = set_clock(MONDAY)
    keys = UniqueKeys("10.1.2.3")
    first, second = keys.make_many(2)
    month_ms = int(MONDAY.replace(day=1, hour=0).timestamp() * 1000)
    raw = bytes.fromhex(first)
    assert (len(first), first) == (32, first.upper())
    assert raw[:4] == bytes([10, 1, 2, 3])
    assert int.from_bytes(raw[4:6], "big") == os.getpid() & 0xFFFF
    assert int.from_bytes(raw[10:14], "big") == now_ms - month_ms
    decoded = decode_unique_key(second, now_ms=now_ms + 1)
    assert (decoded.address, decoded.pid, decoded.born_ms) == ("10.1.2.3", os.getpid() & 0xFFFF, now_ms)
    assert decoded.counter == decode_unique_key(first, now_ms=now_ms + 1).counter + 1


def test_a_unique_key_of_an_ipv6_host_has_56_digits() -> None:
    """The address has sixteen bytes."""
    key = UniqueKeys("::1").make()
    assert len(key) == 56
    assert decode_unique_key(key).address == "::1"


def test_unique_keys_differ_within_a_process_and_between_generators() -> None:
    """Several threads make two hundred thousand keys in a short time."""
    made: list[str] = []
    keys = UniqueKeys()
    threads = [threading.Thread(target=lambda: made.extend(keys.make_many(50_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made += UniqueKeys().make_many(10)
    assert len(set(made)) == len(made) == 200_010


def test_the_time_in_a_unique_key_follows_the_clock(set_clock: SetClock) -> None:
    """However many keys were made before, a later key has its own time."""
    keys = UniqueKeys()
    set_clock(MONDAY)
    keys.make_many(10 * 65_536)
    now_ms = set_clock(MONDAY + datetime.timedelta(seconds=1))
    assert decode_unique_key(keys.make(), now_ms=now_ms + 1).born_ms == now_ms


def test_a_clock_set_back_creates_no_duplicate_key(set_clock: SetClock) -> None:
    """The numbers only rise."""
    keys = UniqueKeys()
    set_clock(MONDAY)
    made = keys.make_many(3)
    set_clock(MONDAY - datetime.timedelta(seconds=100))
    made += keys.make_many(3)
    assert len(set(made)) == 6
    assert made == sorted(made)


def test_a_clock_set_back_into_the_last_month_creates_no_duplicate_key(set_clock: SetClock) -> None:
    """The clock later returns to this month; a writer would treat a second message with the same key as a duplicate."""
    keys = UniqueKeys()
    made = []
    first = datetime.datetime(2025, 12, 1, 0, 0, 5)  # noqa: DTZ001
    for moment in (first, first - datetime.timedelta(hours=1), first):
        set_clock(moment)
        made += keys.make_many(3)
    assert len(set(made)) == 9
    assert made == sorted(made)


def test_a_unique_key_counts_time_from_the_start_of_the_month(set_clock: SetClock) -> None:
    """A key of last month can be read in the following month."""
    keys = UniqueKeys()
    last_ms = set_clock(datetime.datetime(2025, 11, 30, 23, 59, 59))  # noqa: DTZ001
    old = keys.make()
    now_ms = set_clock(datetime.datetime(2025, 12, 1, 0, 0, 5))  # noqa: DTZ001
    assert int(keys.make()[20:28], 16) == 5000
    assert decode_unique_key(old, now_ms=now_ms).born_ms == last_ms


@pytest.mark.parametrize(
    "text", ["", "C0", "G" * 32, " " * 32, "C0 " * 10 + "C0", "0" * 31, "0" * 40, "0" * 32 + " " * 24]
)
def test_an_invalid_message_id_is_refused(text: str) -> None:
    """This covers both kinds."""
    with pytest.raises(ValueError, match=r".+"):
        decode_offset_message_id(text)
    with pytest.raises(ValueError, match=r".+"):
        decode_unique_key(text)


RECORD_ID = "7F00000100001F910000000000002000"


@pytest.mark.parametrize(("suffix", "number"), [("", None), ("-0", 0), ("-41", 41), ("-999999999", 999_999_999)])
def test_the_message_id_of_an_element_is_decoded(suffix: str, number: int | None) -> None:
    assert decode_message_id(RECORD_ID + suffix) == (decode_offset_message_id(RECORD_ID), number)


@pytest.mark.parametrize("suffix", ["-", "-01", "--1", "-1-2", "-x", "- 1", "-1000000000", "-\u0661", "+1"])
def test_a_message_id_with_another_suffix_is_refused(suffix: str) -> None:
    with pytest.raises(ValueError, match=r"digits|hexadecimal"):
        decode_message_id(RECORD_ID + suffix)
