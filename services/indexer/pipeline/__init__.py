"""The pipeline: Structured Streaming whose micro-batches are follow epochs. Spark lives here."""
