"""pytest's fixtures of Tidemark. pytest finds them by the package's entry point, without an import in a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tidemark.testing.server import TidemarkServer


@pytest.fixture(scope="session")
def tidemark_server() -> Iterator[TidemarkServer]:
    """Start the services of a new store once per test session. Give each test its own topic."""
    from tidemark.testing.server import TidemarkServer

    with TidemarkServer() as server:
        yield server
