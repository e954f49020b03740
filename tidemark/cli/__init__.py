"""The `tidemark` command, and LocalStack, which runs the services of a store as children."""
