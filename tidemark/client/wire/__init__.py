"""gRPC connections to writers: channels, the append stream, topic administration."""
