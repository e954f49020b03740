"""Work of a task: reads the pages of its ranges and converts them to batches of Spark's columns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemark.errors import (
    CorruptMessageError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    QueueIllegalError,
    TopicNotFoundError,
)
from tidemark.spark.source.kafka_rows import KafkaRows
from tidemark.spark.source.log import Log, MessagePage
from tidemark.spark.source.open_log import open_log
from tidemark.spark.source.rows import Rows, carrying
from tidemark.spark.source.source_options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from tidemark.spark.source.ranges import QueueRange

_log = logging.getLogger(__name__)
_GONE = (OffsetTooSmallError, OffsetOutOfRangeError, TopicNotFoundError, QueueIllegalError)


def read_ranges(
    ranges: Iterable[QueueRange], options: SourceOptions, schema: StructType, tags: frozenset[str] | None
) -> Iterator[pa.RecordBatch]:
    """Yield batches of *schema* with the messages of *ranges*, one range after the other.

    tags  only messages with one of them

    Raises an OffsetError for deleted messages with failOnDataLoss, a CorruptMessageError with failOnCorruption, and
    errors of `Rows.batch`.
    """
    rows: Rows | KafkaRows = (
        KafkaRows(schema)
        if options.kafka_columns
        else Rows(schema, options.body_schema, fail_fast=options.mode == "FAILFAST")
    )
    needed = rows.message_columns if options.key is None else rows.message_columns | {"keys"}
    log = open_log(options, needed)
    try:
        for one in ranges:
            for page in _pages_of_spans(log, one, options, tags):
                if page.damage:
                    _report_damage(one, page.damage, options)
                messages = page.messages if options.key is None else carrying(page.messages, options.key)
                if messages.num_rows:
                    yield rows.batch(one.queue, messages)
    finally:
        log.close()


def _pages_of_spans(
    log: Log, wanted: QueueRange, options: SourceOptions, tags: frozenset[str] | None
) -> Iterator[MessagePage]:
    for start, end in wanted.spans:
        yield from _pages(log, replace(wanted, start=start, end=end), options, tags)


def _pages(log: Log, wanted: QueueRange, options: SourceOptions, tags: frozenset[str] | None) -> Iterator[MessagePage]:
    start = wanted.start
    while start < wanted.end:
        try:
            for page in log.pages(wanted.queue, start, wanted.end, tags=tags):
                yield page
                start = page.next_offset
            return
        except _GONE as error:
            if options.fail_on_data_loss:
                raise
            _log.warning("%s; continuing because failOnDataLoss is false", error.message)
            if not isinstance(error, OffsetTooSmallError):
                return
        try:
            start = max(start + 1, log.bounds(wanted.queue).min_offset)
        except _GONE:
            return


def _report_damage(wanted: QueueRange, damage: list[str], options: SourceOptions) -> None:
    told = f"queue {wanted.queue_id} of {wanted.topic}: {', '.join(damage)}"
    if options.fail_on_corruption:
        raise CorruptMessageError(f"damaged records, {told}; set failOnCorruption=false to omit them")
    _log.warning("damaged records are omitted: %s", told)
