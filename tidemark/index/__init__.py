"""Builds queues and the key index from the log, as functions and small classes. No Spark, no service."""
