"""One running stack for all tests that use the services as a user does and stop none of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemark.cli.local_stack import LocalStack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Writer, pipeline and query; each test uses topics and groups of its own."""
    with LocalStack(tmp_path_factory.mktemp("stack") / "data") as stack:
        yield stack
