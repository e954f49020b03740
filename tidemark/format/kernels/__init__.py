"""Compiled byte loops, private to `tidemark.format`: uint8 buffers in, native integers out, without the GIL.

They fill buffers and never access files. Each has a plain twin in `tidemark.format`; property tests compare both.
"""
