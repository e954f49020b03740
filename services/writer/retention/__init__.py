"""Deletion of expired segments, in a thread of its own."""
