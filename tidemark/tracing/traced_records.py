"""Search of a buffer for records with a sampled trace context, by a byte pattern, without decoding each message."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.properties import TRACEPARENT

_SAMPLED = re.compile(TRACEPARENT.encode() + rb"\x01(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f][13579bdf])\x02?")


class TracedRecord(NamedTuple):
    """A trace context and the row of its record. A record with several messages can occur several times."""

    traceparent: str
    row: int


def traced_records(
    buffer: U8Array, places: NDArray[np.int64], rows: RequestArray, *, limit: int
) -> Iterator[TracedRecord]:
    """Yield the first *limit* traced messages of the records *rows*, which begin at ascending *places* in the buffer.

    The compressed body of an inner batch is not searched. A body that contains the same bytes counts as a context.
    """
    return itertools.islice(_all(buffer, places, rows), limit)


def _all(buffer: U8Array, places: NDArray[np.int64], rows: RequestArray) -> Iterator[TracedRecord]:
    for found in _SAMPLED.finditer(buffer.data):
        row = int(np.searchsorted(places, found.start(), "right")) - 1
        if row >= 0 and found.end() <= int(places[row]) + int(rows["message_size"][row]):
            yield TracedRecord(found[1].decode(), row)
