"""Checks and screens of `tidemark status` and `tidemark doctor`."""
