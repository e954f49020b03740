"""Recognition of repeated batches: in the window of recent ones, and in the log."""
