"""TidemarkDataSource: the class that Spark instantiates for format("tidemark")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import DataSource

from tidemark.client.errors.address_faults import STORE_SEPARATOR
from tidemark.errors import ArgumentIllegalError
from tidemark.spark.columns import SCHEMA, require_schema
from tidemark.spark.sink.sink_options import SinkOptions
from tidemark.spark.source.source_options import SourceOptions, read_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

_STREAMS_SINCE = (4, 2)
_OTHER_COLUMNS = frozenset({"bodyschema", "kafkacolumns"})  # options of the source that change its columns


class TidemarkDataSource(DataSource):
    """Source and sink of messages for batch and streaming queries. docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        return "tidemark"

    def schema(self) -> StructType:
        """Return all columns; `.schema("queue_offset long, body binary")` selects some of them."""
        given = {name.lower(): value for name, value in self.options.items()}
        has_others = bool(given.keys() & _OTHER_COLUMNS) or STORE_SEPARATOR in (given.get("url") or "")
        return self._options().columns if has_others and "writers" not in given else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        from tidemark.spark.source.batch_reader import BatchReader

        options = self._options()
        require_schema(schema, options.columns)
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a streaming query."""
        _require_streams()
        from tidemark.spark.source.stream_reader import StreamReader

        options = self._options()
        require_schema(schema, options.columns)
        return StreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        from tidemark.spark.sink.batch_sink import BatchSink

        _require_append(overwrite)
        return BatchSink(read_options(SinkOptions, dict(self.options)), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of a streaming query."""
        _require_streams()
        from tidemark.spark.sink.stream_sink import StreamSink

        _require_append(overwrite)
        return StreamSink(read_options(SinkOptions, dict(self.options)), schema)

    def _options(self) -> SourceOptions:
        return read_options(SourceOptions, dict(self.options))


def _require_append(overwrite: bool) -> None:
    if overwrite:
        raise ArgumentIllegalError(
            'overwriting is not supported: use mode("append"), or outputMode("append") or ("update")'
        )


def _require_streams() -> None:
    found = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if found < _STREAMS_SINCE:
        raise ArgumentIllegalError(
            f"streaming requires Spark 4.2 or later, this is {pyspark.__version__}; batch queries work"
        )
