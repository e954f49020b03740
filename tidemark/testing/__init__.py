"""Tests of programs that use Tidemark (docs/testing.md).

`TidemarkServer` runs real services in a temporary directory; `tidemark_server` is a pytest fixture of it. `MemoryLog`
is a log in memory, with producers and consumers that have the client's interface.
"""

from tidemark.testing.memory_async import AsyncMemoryConsumer, AsyncMemoryProducer
from tidemark.testing.memory_consumer import MemoryConsumer
from tidemark.testing.memory_log import MemoryLog
from tidemark.testing.memory_producer import MemoryProducer
from tidemark.testing.server import TidemarkServer

__all__ = [
    "AsyncMemoryConsumer",
    "AsyncMemoryProducer",
    "MemoryConsumer",
    "MemoryLog",
    "MemoryProducer",
    "TidemarkServer",
]
