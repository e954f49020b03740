"""Producers against a fake writer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.client.fake_writer import FakeWriter
from tidemark.client import Producer


@pytest.fixture
def writer() -> Iterator[FakeWriter]:
    """Return a running fake writer."""
    fake = FakeWriter()
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def producer(writer: FakeWriter) -> Iterator[Producer]:
    """Return a producer with short timeouts that is connected to the writer."""
    with Producer(f"127.0.0.1:{writer.port}", timeout_s=5) as client:
        yield client
