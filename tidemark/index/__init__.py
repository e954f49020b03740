"""Log → queues, as plain functions and small classes over arrays and files. No Spark, no service."""
