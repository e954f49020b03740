"""Compiled byte loops, private to `tidemark.format`: uint8 buffers in, native integers out, the GIL released.

They fill buffers and never touch files. Each has a plain twin in the modules above it; property tests hold them equal.
"""
