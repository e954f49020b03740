"""The pipeline: Structured Streaming whose micro-batches are epochs. The only package that uses Spark."""
