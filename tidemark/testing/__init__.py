"""Tests of programs that use Tidemark: real services in a temporary directory, started within seconds.

`TidemarkServer` is a context manager; `tidemark_server` is a pytest fixture of it (docs/testing.md).
"""

from tidemark.testing.server import TidemarkServer

__all__ = ["TidemarkServer"]
