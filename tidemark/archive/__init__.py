"""Archives of a store: its messages as Parquet, written by a Spark job and compared with the store (docs/archive.md).

Must not import the command line. Only reading and writing messages needs Spark; planning and checking files do not.
"""
