"""`format("tidemark")` for reading: options, ranges, tasks, streams."""
