"""The indexer: the pipeline (Spark) and the query facade (FastAPI). They meet in files and in one number."""
