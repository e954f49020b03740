"""The writer: gRPC batch append over the CommitLog that it owns."""
