"""Checks of a store: read-only functions that compare its files with each other."""
