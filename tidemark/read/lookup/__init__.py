"""Lookups: by message id, by key, by store time, and a scan over a topic."""
