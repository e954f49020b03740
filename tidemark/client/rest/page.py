"""Pages of messages in the forms for volume: records as stored, and Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPMessage
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from tidemark.client.rest.connections import Answer

if TYPE_CHECKING:
    import pyarrow as pa

RECORDS = "application/octet-stream"
ARROW = "application/vnd.apache.arrow.stream"


class RecordsPage(NamedTuple):
    """Records of one queue, back to back, as they are stored."""

    data: memoryview
    status: str
    requested_offset: int
    next_offset: int
    min_offset: int
    max_offset: int
    message_count: int
    skipped: list[dict[str, Any]]  # records that failed their check; the first twenty


def records_page(answer: Answer) -> RecordsPage:
    """The page that *answer* holds."""
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
    """The table that *answer* holds; its columns are in the answer's memory."""
    import pyarrow as pa  # 50 MB of libraries, for those who want tables

    with pa.ipc.open_stream(pa.py_buffer(answer.body)) as reader:
        return reader.read_all()


def has_messages(headers: HTTPMessage | Mapping[str, str]) -> bool:
    """Whether a page with these headers holds any."""
    return headers["Tidemark-Message-Count"] != "0"


def following_offset(headers: HTTPMessage | Mapping[str, str], *, at_end: bool) -> int | None:
    """Return where the next page begins; None when there is none yet, unless it is wanted *at_end*, too.

    A page that does not move the cursor is the last one for now: the units behind it are lost, or built again.
    """
    if "Tidemark-Next-Offset" not in headers:  # a problem
        return None
    next_offset = int(headers["Tidemark-Next-Offset"])
    has_moved = next_offset > int(headers["Tidemark-Requested-Offset"])
    return next_offset if at_end or (has_moved and next_offset < int(headers["Tidemark-Max-Offset"])) else None
