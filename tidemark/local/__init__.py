"""Writer, pipeline and query service as child processes of this one, for `tidemark serve`, tests and benchmarks."""
