"""Replication of the log: the streams of a writer, and the log of a replica."""
