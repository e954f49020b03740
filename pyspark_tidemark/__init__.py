"""Entry point for format("tidemark"): Spark looks for DefaultSource in modules named pyspark_…."""

from tidemark.spark import TidemarkDataSource as DefaultSource

__all__ = ["DefaultSource"]
