"""Consumers: assignment, fetching, positions, commits, handlers, retries."""
