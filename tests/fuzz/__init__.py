"""Fuzz targets for wire batches, store files, settings, requests and raw bytes to real services, and for the OpenAPI.

A target is a function with `@fuzz(...)` in a `test_` file. `make fuzz` shares FUZZ_SECONDS (240) among the targets,
with new examples each time, and prints its FUZZ_SEED, which repeats the run. `make test` runs a few fixed examples.
A failure is printed as its least example: write it down as a test next to its code, then fix the fault.
"""
