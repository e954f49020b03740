"""Pages of messages in the two forms for high volume: stored records, and Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import orjson

from tidemark.client.answers import SkippedAnswer
from tidemark.client.rest.connections import Answer

if TYPE_CHECKING:
    import pyarrow as pa

RECORDS = "application/octet-stream"
ARROW = "application/vnd.apache.arrow.stream"


class RecordsPage(NamedTuple):
    """Records of one queue, back to back, in their stored form."""

    data: memoryview
    status: str
    requested_offset: int
    next_offset: int
    min_offset: int
    max_offset: int
    message_count: int
    skipped: list[SkippedAnswer]  # the first twenty records that failed their check


def records_page(answer: Answer) -> RecordsPage:
    """Return the page in *answer*."""
    headers = answer.headers
    return RecordsPage(
        answer.body,
        headers["Tidemark-Status"],
        int(headers["Tidemark-Requested-Offset"]),
        int(headers["Tidemark-Next-Offset"]),
        int(headers["Tidemark-Min-Offset"]),
        int(headers["Tidemark-Max-Offset"]),
        int(headers["Tidemark-Message-Count"]),
        orjson.loads(headers["Tidemark-Skipped"]),
    )


def table_of(answer: Answer) -> pa.Table:
    """Return the table in *answer*; its columns refer to the answer's memory."""
    import pyarrow as pa  # imported here: 50 MB of libraries, needed only for tables

    with pa.ipc.open_stream(pa.py_buffer(answer.body)) as reader:
        return reader.read_all()


def has_messages(headers: Mapping[str, str]) -> bool:
    """Return True if a page with these headers has messages."""
    return headers["Tidemark-Message-Count"] != "0"


def following_offset(headers: Mapping[str, str], *, at_end: bool) -> int | None:
    """Return the offset of the next page, or None if there is no further page now. at_end: return it even then.

    A page that does not move the cursor is the last one for now: the following units are lost, or being rebuilt.
    """
    if "Tidemark-Next-Offset" not in headers:  # the answer is a problem
        return None
    next_offset = int(headers["Tidemark-Next-Offset"])
    has_moved = next_offset > int(headers["Tidemark-Requested-Offset"])
    return next_offset if at_end or (has_moved and next_offset < int(headers["Tidemark-Max-Offset"])) else None
