"""format("tidemark_floor"): the upper bound of a source in Python. Each task reads one batch and returns it repeatedly.

Plan, columns, and number of messages are those of format("tidemark"), and so are the sizes of the batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from tidemark.spark import TidemarkDataSource
from tidemark.spark.source.batch_reader import BatchReader
from tidemark.spark.source.tasks import Task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class FloorDataSource(TidemarkDataSource):
    """Source of the first batch of each task, again and again."""

    @classmethod
    def name(cls) -> str:
        return "tidemark_floor"

    def reader(self, schema: StructType) -> BatchReader:
        return _Repeating(self._options(), schema)


class _Repeating(BatchReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Task):
            return
        batches = super().read(partition)
        batch, left = next(batches), sum(one.wanted for one in partition.ranges)
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows
