"""Pages of messages as Arrow tables, with the position of each message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson
import pyarrow as pa

from tidemark.client.answers import SkippedAnswer
from tidemark.client.received_message import StoreQueue, TopicQueue
from tidemark.client.rest.connections import Answer
from tidemark.client.rest.page import ARROW, table_of
from tidemark.client.rest.problems import require_success

__all__ = ["ARROW", "TablePage", "join_pages", "table_page"]


class TablePage(NamedTuple):
    """The result of one pull as a table. skipped: the first twenty records that failed their check."""

    queue: TopicQueue
    table: pa.Table
    next_offset: int
    skipped: list[SkippedAnswer]


def table_page(queue: TopicQueue, answer: Answer) -> TablePage:
    """Return the page in an Arrow *answer*; raise the StoreError of a problem."""
    table = table_of(require_success(answer))
    headers = answer.headers
    return TablePage(queue, table, int(headers["Tidemark-Next-Offset"]), orjson.loads(headers["Tidemark-Skipped"]))


def join_pages(pages: Sequence[TablePage]) -> pa.Table | None:
    """Return one table of all *pages*, with columns topic and queue_id, and with store if they are of several stores.

    None for no pages.
    """
    if not pages:
        return None
    return pa.concat_tables([_with_place(page) for page in pages])


def _with_place(page: TablePage) -> pa.Table:
    rows = page.table.num_rows
    table = page.table.replace_schema_metadata(None)
    table = table.add_column(0, "topic", pa.repeat(pa.scalar(page.queue.topic), rows))
    table = table.add_column(1, "queue_id", pa.repeat(pa.scalar(page.queue.queue_id, pa.int32()), rows))
    if not isinstance(page.queue, StoreQueue):
        return table
    return table.add_column(0, "store", pa.repeat(pa.scalar(page.queue.store), rows))
