"""Errors of connections as exceptions of `tidemark.errors` that name address and cause."""
