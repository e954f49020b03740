"""A writer that serves the remoting protocol, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.writer.harness import RunningWriter
from tests.remoting_client import RemotingClient

LISTEN = "127.0.0.1:0"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunningWriter]:
    """Run a writer with both interfaces on an empty store."""
    with RunningWriter(tmp_path / "store", writer_remoting_listen=LISTEN) as running:
        yield running


@pytest.fixture
def client(writer: RunningWriter) -> Iterator[RemotingClient]:
    """Return one connection to it."""
    with RemotingClient(writer.remoting_port) as connection:
        yield connection
