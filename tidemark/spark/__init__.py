"""format("tidemark"): the log as a Spark source and sink, for batches and streams, in pure Python.

Spark finds it through the module `pyspark_tidemark`. docs/spark.md lists the options.
"""

from tidemark.spark.data_source import TidemarkDataSource
from tidemark.spark.worker_tracebacks import omit_tracebacks_of_closed_connections

__all__ = ["TidemarkDataSource"]

omit_tracebacks_of_closed_connections()  # each worker that reads or writes imports this package
