"""Spark's part of the pipeline: session, queries, Python workers, checkpoint, watchdog."""
