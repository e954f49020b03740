"""The CommitLog for readers: its files, their contents, their times."""
