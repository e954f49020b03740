from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.replication.members import Members

Make = Callable[..., Members]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Return a function that returns members of a new group, which are ended after the test."""
    made: list[Members] = []

    def members(names: str = "abc", **environment: str) -> Members:
        made.append(Members(tmp_path / f"group{len(made)}", names, environment))
        return made[-1]

    yield members
    for one in made:
        one.close()
