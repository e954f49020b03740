"""The CommitLog: append, flush, commit, recovery. Owns every file of the log. Imports neither gRPC nor retention."""
