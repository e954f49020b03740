"""`format("tidemark")` for writing: options, rows, tasks, replays."""
