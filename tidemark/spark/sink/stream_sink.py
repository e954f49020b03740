"""Sink of streams. A module of its own because older versions of Spark lack its base class."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from tidemark.errors import ArgumentIllegalError
from tidemark.spark.sink.batch_sink import current_task, send
from tidemark.spark.sink.sink_options import SinkOptions
from tidemark.spark.sink.sink_rows import require_sink_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class StreamSink(DataSourceStreamArrowWriter):
    """Sink of one streaming query over all its restarts."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        require_sink_schema(schema, options.topic, kafka_columns=options.kafka_columns)
        if not options.url:
            raise ArgumentIllegalError("option url: required for a stream, to look up messages sent before a restart")
        if options.run_id is not None:
            raise ArgumentIllegalError("option runId: not allowed for a stream, which is identified by its checkpoint")
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send all rows like `BatchSink.write`."""
        task = current_task()
        query_id = task.getLocalProperty("sql.streaming.queryId")
        batch_id = task.getLocalProperty("streaming.sql.batchId")
        assert query_id is not None
        assert batch_id is not None
        return send(iterator, self._options, f"{sha256(query_id.encode()).hexdigest()[:16]}-{batch_id}")
