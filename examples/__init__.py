"""Self-contained programs that show how to use Tidemark. `make examples` runs them all."""
