"""`tidemark archive`: verbs that copy a store to Parquet, and verify the copy."""
