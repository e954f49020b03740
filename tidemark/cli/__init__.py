"""The `tidemark` command."""
