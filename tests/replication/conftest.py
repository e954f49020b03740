from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.etcd import Etcd
from tests.replication.members import Members
from tests.replication.nemesis.faults import LinkedMembers
from tests.replication.nemesis.network import Network

Make = Callable[..., Members]
MakeElected = Callable[..., LinkedMembers]
TTL_MS = 2_000


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


@pytest.fixture
def make_elected(tmp_path: Path) -> Iterator[MakeElected]:
    """Return a function that returns members a, b and c of a group that elects its writer, by an etcd of their own."""
    made: list[LinkedMembers] = []

    def members(*, etcds: int = 1, with_readers: bool = False, **environment: str) -> LinkedMembers:
        group = LinkedMembers(
            tmp_path / f"group{len(made)}",
            "abc",
            {"TIDEMARK_LEASE_TTL_MS": str(TTL_MS), "TIDEMARK_REPLICA_LAG_MS": "1500", **environment},
            with_readers=with_readers,
        )
        group.etcd, group.network = Etcd(tmp_path / f"etcd{len(made)}", etcds), Network()
        made.append(group)
        return group

    yield members
    for one in made:
        one.close()
        one.etcd.close()
        one.network.close()
