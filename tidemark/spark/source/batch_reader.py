"""BatchReader: plans the ranges of a batch query. Pushed filters exclude ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSourceReader, InputPartition

from tidemark.spark.source.kafka_rows import KAFKA_NAMES
from tidemark.spark.source.keyed_ranges import with_places
from tidemark.spark.source.open_log import open_log
from tidemark.spark.source.pruning import OWN_NAMES, Wanted
from tidemark.spark.source.read_task import read_ranges
from tidemark.spark.source.resolve import Resolver
from tidemark.spark.source.source_options import SourceOptions
from tidemark.spark.source.tasks import Task, in_tasks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


class BatchReader(DataSourceReader):
    """Reader of a batch query: planned on the driver; `read` runs in tasks."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options.require_batch()
        self._schema = schema
        self._wanted = Wanted(tags=options.tags)

    @property
    def pushFilters(self) -> Callable[[list[Filter]], Iterable[Filter]]:  # noqa: N802
        """Accept filters if pushFilters is set; Spark still applies all of them.

        Spark 4.3 reuses one plan, with the last filters, for all queries of a DataFrame; therefore this is opt-in.
        Spark rejects a reader whose class defines this method unless filter push-down is enabled, which is not the
        default; it checks `__func__`.
        """
        return _Pushing(self._narrow)

    def _narrow(self, filters: list[Filter]) -> list[Filter]:
        if self._options.push_filters:
            names = KAFKA_NAMES if self._options.kafka_columns else OWN_NAMES
            self._wanted = self._wanted.and_filters(filters, names)
        return filters

    def partitions(self) -> list[InputPartition]:
        """Return the tasks with their ranges; for an empty list Spark makes one empty partition.

        With `key`, only ranges with places of the key are returned, as far as the key index has them.
        """
        log = open_log(self._options)
        try:
            slack_ms = int(self._options.clock_slack * 1000)
            whole = Resolver(log, self._options).batch()
            kept = [part for one in whole if (part := self._wanted.of_range(one, log, slack_ms=slack_ms)) is not None]
            key, most = self._options.key, self._options.key_lookup_limit
            if key is not None and most:
                kept = with_places(kept, log, key, most=most)
            return cast(list[InputPartition], in_tasks(kept, self._options, log))
        finally:
            log.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield batches of the messages of a Task. Fails like `read_ranges`."""
        if isinstance(partition, Task):
            yield from read_ranges(partition.ranges, self._options, self._schema, self._wanted.tags)


class _Pushing:
    def __init__(self, narrow: Callable[[list[Filter]], list[Filter]]) -> None:
        self._narrow = narrow
        self.__func__ = getattr(DataSourceReader, "pushFilters", None)  # since 4.1

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._narrow(filters)
