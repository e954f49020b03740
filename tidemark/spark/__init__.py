"""format("tidemark"): the log as a source and a sink of Spark's, batch and stream, in pure Python.

Spark finds it by itself through the module `pyspark_tidemark`. docs/spark.md lists the options.
"""

from tidemark.spark.data_source import TidemarkDataSource

__all__ = ["TidemarkDataSource"]
