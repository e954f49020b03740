"""gRPC of the writer: its services, interceptors and answers. Knows the wire and nothing of files."""
