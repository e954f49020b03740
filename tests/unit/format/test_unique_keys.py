"""Hashes of unique keys: the compiled loop beside plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import properties, row_of_records
from tidemark.format.check import Checker
from tidemark.format.unique_keys import hash_unique_key, hash_unique_keys

keys = st.text(st.characters(exclude_categories=["C"]), max_size=40)


@given(st.lists(keys, min_size=1, max_size=20))
def test_the_loop_hashes_the_keys_of_the_rows_that_have_one(keys: list[str]) -> None:
    data = row_of_records({"properties": properties({"UNIQ_KEY": key}) if key else b""} for key in keys)
    buffer = np.frombuffer(data, np.uint8)
    rows = Checker().check(buffer, base_offset=0).requests
    hashes, places = hash_unique_keys(buffer, rows)
    assert hashes.tolist() == [hash_unique_key(key.encode()) for key in keys if key]
    assert places.tolist() == [int(row["physical_offset"]) for row, key in zip(rows, keys, strict=True) if key]


def test_similar_keys_have_different_hashes() -> None:
    """Keys may differ only in length, or in trailing zero bytes."""
    keys = [b"a", b"a\0", b"a" * 8, b"a" * 9, b"b" * 8, b"a" * 7 + b"b", *(b"%032d" % i for i in range(1000))]
    assert len({hash_unique_key(key) for key in keys}) == len(keys)
