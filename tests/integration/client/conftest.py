"""A real writer for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.client import Producer
from tidemark.local.local_stack import WRITER, LocalStack


@pytest.fixture(scope="session")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Run one writer for all tests; each test uses its own topics."""
    with LocalStack(tmp_path_factory.mktemp("store"), services=(WRITER,)) as stack:
        yield stack


@pytest.fixture
def producer(writer: LocalStack) -> Iterator[Producer]:
    """Return a producer that is connected to it."""
    with Producer(writer.writer_address) as client:
        yield client


@pytest.fixture
def own_writer(tmp_path: Path) -> Iterator[LocalStack]:
    """Run a writer that a test may kill."""
    with LocalStack(tmp_path / "store", services=(WRITER,)) as stack:
        yield stack
