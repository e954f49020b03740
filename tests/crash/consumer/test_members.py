"""Members of a group that are killed, or frozen past their session: nothing is lost, late commits have no effect."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tests.waiting import until

QUEUES = 6
pytestmark = pytest.mark.crash


class Group:
    """Member processes over one store."""

    def __init__(self, folder: Path, client: httpx.Client) -> None:
        self._folder = folder
        self._client = client
        self.members: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        """Start one more member."""
        command = [sys.executable, "-m", "tests.crash.consumer.group_member", str(self._client.base_url)]
        self.members.append(subprocess.Popen([*command, str(self._path(len(self.members)))]))
        return self.members[-1]

    def handled(self, number: int) -> list[bytes]:
        """Return the bodies that member *number* has handled, in order."""
        path = self._path(number)
        return path.read_bytes().splitlines() if path.exists() else []

    def all_handled(self) -> Counter[bytes]:
        """Return how often each body was handled."""
        return Counter(body for number in range(len(self.members)) for body in self.handled(number))

    def offsets(self) -> dict[int, int]:
        """Return the committed offsets by queue."""
        queues = self._client.get("/v1/groups/billing").json().get("queues", [])
        return {one["queue_id"]: one["offset"] for one in queues}

    def shares(self) -> list[int]:
        """Return the number of queues of each member, ascending."""
        members = self._client.get("/v1/groups/billing").json().get("members", [])
        return sorted(len(member["holds"]) for member in members)

    def _path(self, number: int) -> Path:
        return self._folder / f"member-{number}"


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path / "store")
    store.topic("orders", queues=QUEUES)
    return store


@pytest.fixture
def group(tmp_path: Path, store: BuiltStore) -> Iterator[Group]:
    with serve_query(store.root) as client:
        group = Group(tmp_path, client)
        yield group
        for process in group.members:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()


def fill(store: BuiltStore, first: int, count: int) -> list[bytes]:
    bodies = [b"%d-%d" % (queue_id, i) for queue_id in range(QUEUES) for i in range(first, first + count)]
    for body in bodies:
        store.append("orders", body, queue_id=int(body.split(b"-")[0]))
    store.publish()
    return bodies


def test_a_killed_member_of_three_loses_nothing(store: BuiltStore, group: Group) -> None:
    """Every message is handled; only those that the killed member had not committed are handled twice."""
    sent = fill(store, 0, 30)
    members = [group.start() for _ in range(3)]
    until(lambda: group.shares() == [QUEUES // 3] * 3)
    sent += fill(store, 30, 200)
    until(lambda: len(group.handled(1)) > 50)
    members[1].kill()
    members[1].wait()
    until(lambda: set(group.all_handled()) == set(sent))
    until(lambda: group.offsets() == dict.fromkeys(range(QUEUES), 230))
    twice = {body for body, times in group.all_handled().items() if times > 1}
    assert twice <= set(group.handled(1))


def test_a_frozen_member_is_fenced_when_it_resumes(store: BuiltStore, group: Group) -> None:
    """Its session has expired: its commit is refused, and it joins again."""
    sent = fill(store, 0, 100)
    frozen = group.start()
    until(lambda: len(group.handled(0)) > 20)
    frozen.send_signal(signal.SIGSTOP)
    group.start()
    until(lambda: set(group.all_handled()) == set(sent))
    until(lambda: group.offsets() == dict.fromkeys(range(QUEUES), 100))
    frozen.send_signal(signal.SIGCONT)
    until(lambda: group.shares() == [QUEUES // 2, QUEUES // 2])
    more = set(fill(store, 100, 50))
    until(lambda: more <= set(group.all_handled()))
    assert more & set(group.handled(0))
    until(lambda: group.offsets() == dict.fromkeys(range(QUEUES), 150))
    assert frozen.poll() is None
