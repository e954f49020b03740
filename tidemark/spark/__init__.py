"""format("tidemark"): the log as a Spark source and sink, for batches and streams, in pure Python.

Spark finds it through the module `pyspark_tidemark`. docs/spark.md lists the options.
"""

from tidemark.spark.data_source import TidemarkDataSource

__all__ = ["TidemarkDataSource"]
