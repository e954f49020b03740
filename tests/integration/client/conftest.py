"""A real writer for the tests of this folder, and each of the client's wires to it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tidemark.client import Producer
from tidemark.local.local_stack import WRITER, LocalStack


@pytest.fixture(scope="session")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], LocalStack]]:
    """Return a function that runs one writer for all tests of a wire; each test uses its own topics."""
    with ExitStack() as running:

        @functools.cache
        def start(wire: str) -> LocalStack:
            return running.enter_context(LocalStack(tmp_path_factory.mktemp(wire), services=(WRITER,)))

        yield start


@pytest.fixture
def writer(wire: str, writers: Callable[[str], LocalStack]) -> LocalStack:
    """Return the writer for the tests of this wire."""
    return writers(wire)


@pytest.fixture
def producer(writer: LocalStack) -> Iterator[Producer]:
    """Return a producer that is connected to it."""
    with Producer(writer.writer_address) as client:
        yield client


@pytest.fixture
def own_writer(wire: str, tmp_path: Path) -> Iterator[LocalStack]:
    """Run a writer that a test may kill."""
    with LocalStack(tmp_path / "store", services=(WRITER,)) as stack:
        yield stack
