"""Archives of a store: its messages as Parquet, written by a Spark job and compared with the store (docs/archive.md).

Knows no command line. Only what reads and writes messages needs Spark: planning, and checking files, do not.
"""
