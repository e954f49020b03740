from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import CorruptStoreError
from tidemark.replication.epochs import Epoch, consistent_point, cut_epochs, decode_epochs, encode_epochs

ROCKETMQS = b"2\n1054651886\n1-0\n5-305880\n"  # recorded from a broker of 5.3.3
OURS = (Epoch(1, 0), Epoch(3, 100), Epoch(4, 250))


def test_the_file_has_rocketmqs_form() -> None:
    assert encode_epochs([Epoch(1, 0), Epoch(5, 305_880)]) == ROCKETMQS
    assert decode_epochs(ROCKETMQS) == (Epoch(1, 0), Epoch(5, 305_880))


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 1 << 40)), max_size=6))
def test_epochs_are_read_as_written(steps: list[tuple[int, int]]) -> None:
    epochs, number, start = [], 0, 0
    for more, further in steps:
        number, start = number + more, start + further
        epochs.append(Epoch(number, start))
    assert decode_epochs(encode_epochs(epochs)) == tuple(epochs)


DAMAGED = [
    b"",
    b"2\n",
    b"x\n0\n",
    b"1\n0\n1-0\n",
    ROCKETMQS[:-3],
    ROCKETMQS + b"6-7\n",
    ROCKETMQS.replace(b"0\n", b"1\n"),
]
ILLEGAL = [[Epoch(0, 0)], [Epoch(1, -1)], [Epoch(2, 0), Epoch(2, 5)], [Epoch(1, 5), Epoch(2, 4)]]


@pytest.mark.parametrize("data", DAMAGED + list(map(encode_epochs, ILLEGAL)))
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptStoreError, match="epoch file"):
        decode_epochs(data)


@pytest.mark.parametrize(
    ("theirs", "their_end", "expected"),
    [
        (OURS, 300, 300),  # the same history: the lesser end
        (OURS, 900, 400),
        ((Epoch(1, 0), Epoch(3, 100), Epoch(5, 320)), 500, 250),  # 4 is ours alone
        ((Epoch(1, 0), Epoch(3, 100), Epoch(5, 180)), 500, 180),
        ((Epoch(1, 0), Epoch(3, 120)), 500, 100),  # 3 began elsewhere
        ((Epoch(1, 0), Epoch(4, 90)), 500, 90),
        ((Epoch(2, 0), Epoch(5, 90)), 500, 0),
        ((), 0, 0),
    ],
)
def test_the_consistent_point_is_the_end_of_the_newest_common_epoch(
    theirs: tuple[Epoch, ...], their_end: int, expected: int
) -> None:
    assert consistent_point(OURS, 400, theirs, their_end) == expected
    assert consistent_point(theirs, their_end, OURS, 400) == expected


@pytest.mark.parametrize(("end", "expected"), [(0, 0), (1, 1), (100, 1), (101, 2), (250, 2), (251, 3)])
def test_a_cut_log_keeps_the_epochs_that_have_bytes(end: int, expected: int) -> None:
    assert cut_epochs(OURS, end) == OURS[:expected]
