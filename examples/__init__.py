"""Programs that show how Tidemark is used, each by itself. `make examples` runs them all."""
