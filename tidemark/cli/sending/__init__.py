"""Input of `tidemark produce`: lines, JSON, CSV and Parquet as messages."""
