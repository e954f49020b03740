"""Writer and query service as separate processes with low limits."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tidemark.local.local_stack import QUERY, WRITER, LocalStack

Start = Callable[..., LocalStack]


@pytest.fixture(autouse=True, scope="session")
def _many_files() -> None:
    """Raise the limit of open files, because this process holds as many connections as the services."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return start(QUERY_HEAD_TIMEOUT_MS=500): run both services with these settings until the test ends."""
    with ExitStack() as running:

        def begin(*services: str, **settings: object) -> LocalStack:
            environment = {f"TIDEMARK_{name}": str(value) for name, value in settings.items()}
            stack = LocalStack(tmp_path / "data", services=services or (WRITER, QUERY), environment=environment)
            return running.enter_context(stack)

        yield begin
