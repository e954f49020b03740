"""Rows of records that a real broker has written, for mutation."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.conformance.format.golden import walk_log

_MOST_RECORDS, _MOST_BYTES = 6, 16_384
_ROWS_A_STORE = 60


class Row(NamedTuple):
    """Bytes of a log between two edges of records. base_offset: physical, of the first one."""

    base_offset: int
    data: bytes


@cache
def rows_of(unpack: Callable[[str], Path], stores: tuple[str, ...]) -> list[Row]:
    """Return some rows of each store, always the same ones."""
    chosen = random.Random(7)
    rows: list[Row] = []
    for store in stores:
        found = []
        for file in walk_log(unpack(store)):
            edges = [int(at) - file.start for at in file.result.requests["physical_offset"]] + [file.result.end_at]
            for first in range(len(edges) - 1):
                last = min(first + chosen.randint(1, _MOST_RECORDS), len(edges) - 1)
                data = file.buffer[edges[first] : edges[last]].tobytes()
                if len(data) <= _MOST_BYTES:
                    found.append(Row(file.start + edges[first], data))
        rows += chosen.sample(found, min(_ROWS_A_STORE, len(found)))
    return rows
