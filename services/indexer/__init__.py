"""The indexer: the pipeline (Spark), the query service (FastAPI) and the follower of an attached store.

The parts share files and one number, the watermark; none imports another.
"""
