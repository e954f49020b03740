"""What Spark imports for format("tidemark"): it looks for DefaultSource in modules called pyspark_…"""

from tidemark.spark import TidemarkDataSource as DefaultSource

__all__ = ["DefaultSource"]
