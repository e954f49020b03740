"""Compile every loop into the cache, once, so that no service does at its first start: the last step of `make sync`."""

from __future__ import annotations

from services.writer.encode import warm_up as writing
from tidemark.format.host import IPV4_HOST_SIZE
from tidemark.index.warm_up import warm_up as indexing
from tidemark.read.warm_up import warm_up as reading

if __name__ == "__main__":
    writing(bytes(IPV4_HOST_SIZE))
    indexing()
    reading()
