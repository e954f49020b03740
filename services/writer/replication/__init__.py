"""Replication of the log: pieces of it, and the log of a replica. No role uses them yet."""
