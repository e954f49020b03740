"""The benchmarks of `make bench`: figures, with machine and flush mode. They are not tests."""
