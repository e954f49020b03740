"""Offsets of queues and groups over the remoting protocol: the same as over REST, and durable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.built_store import BuiltStore
from tests.fixed_ports import fixed_port
from tests.query_server import ServedRemoting, serve_query_remoting
from tests.remoting_client import RemotingClient
from tests.waiting import until
from tidemark.remoting import RequestCode

from .calls import COMMIT, OWN, commit_fields, group_offset, heartbeat, hold, pull

pytestmark = pytest.mark.integration
COUNT = 10  # messages in queue 0 of `orders`
REST = "/v1/groups/g/topics/orders/queues/0/offset"
TIMES = [1_000, 1_000, 2_000, 5_000, 5_000, 5_000, 9_000]


@pytest.fixture
def served(built: BuiltStore) -> Iterator[ServedRemoting]:
    with serve_query_remoting(built.root, query_recheck_ms=20, remoting_offset_interval_ms=20) as served:
        yield served


def commit(client: RemotingClient, offset: int, **changed: object) -> int:
    return client.call(RequestCode.UPDATE_CONSUMER_OFFSET, commit_fields(offset, **changed)).code


def commit_one_way(client: RemotingClient, offset: int, **changed: object) -> None:
    client.send(RequestCode.UPDATE_CONSUMER_OFFSET, commit_fields(offset, **changed), one_way=True)


def table(built: BuiltStore) -> dict[str, dict[str, int]]:
    """Return the offsets in the file that the service writes in RocketMQ's format."""
    path = built.root / "config" / "consumerOffset.json"
    content: dict[str, dict[str, int]] = json.loads(path.read_text())["offsetTable"] if path.exists() else {}
    return content


# -- groups ---------------------------------------------------------------------------------------------------------


def test_a_new_group_begins_at_0_only_in_a_queue_that_begins_at_0(client: RemotingClient) -> None:
    assert group_offset(client) == group_offset(client, queueId=1) == (0, 0)
    assert group_offset(client, setZeroIfNotFound="false") == (22, None)
    assert group_offset(client, topic="nothing") == (22, None)
    assert group_offset(client, queueId=2) == (22, None)


def test_a_new_group_has_no_offset_in_a_queue_that_begins_later(built: BuiltStore) -> None:
    while built.end < built.log_file_size:
        built.append("orders", bytes(9_000))
    built.publish()
    (built.root / "commitlog" / f"{0:020d}").unlink()
    with serve_query_remoting(built.root) as served, served.connect() as client:
        assert group_offset(client) == (22, None)


def test_a_committed_offset_is_stored_and_both_interfaces_return_it(
    built: BuiltStore, served: ServedRemoting, client: RemotingClient
) -> None:
    assert commit(client, 4) == 0
    assert table(built) == {"orders@g": {"0": 4}}
    assert served.http.get(REST).json()["offset"] == 4
    assert group_offset(client, setZeroIfNotFound="false") == (0, 4)
    served.http.put(REST, json={"offset": 7}).raise_for_status()
    assert group_offset(client) == (0, 7)


def test_an_offset_committed_one_way_is_known_at_once_and_stored_soon(
    built: BuiltStore, served: ServedRemoting, client: RemotingClient
) -> None:
    commit_one_way(client, 4)
    assert group_offset(client) == (0, 4)
    until(lambda: table(built) == {"orders@g": {"0": 4}})
    commit_one_way(client, 2)  # the last one wins
    until(lambda: served.http.get(REST).json()["offset"] == 2)


def test_an_offset_is_committed_by_a_pull(built: BuiltStore, client: RemotingClient) -> None:
    pull(client, 5, commitOffset=3)
    assert group_offset(client, setZeroIfNotFound="false") == (22, None)
    assert pull(client, 5, sysFlag=OWN | COMMIT, commitOffset=3).code == 0
    assert group_offset(client) == (0, 3)
    until(lambda: table(built) == {"orders@g": {"0": 3}})


@pytest.mark.parametrize(
    ("offset", "changed", "code"),
    [
        (COUNT + 1, {}, 29),
        (-1, {}, 29),
        (0, {"queueId": 2}, 29),
        (0, {"queueId": -1}, 29),
        (0, {"consumerGroup": "no@group"}, 29),
        (0, {"topic": "nothing"}, 17),
    ],
)
def test_an_illegal_commit_is_refused_in_each_way(
    built: BuiltStore, client: RemotingClient, offset: int, changed: dict[str, object], code: int
) -> None:
    """One way and in a pull it is dropped; legal offsets after it are stored."""
    assert commit(client, offset, **changed) == code
    commit_one_way(client, offset, **changed)
    pull(client, 5, sysFlag=OWN | COMMIT, commitOffset=offset, **changed)
    commit_one_way(client, 0, queueId=1)
    until(lambda: table(built) == {"orders@g": {"1": 0}})


def test_the_end_of_a_queue_can_be_committed(client: RemotingClient) -> None:
    assert commit(client, COUNT) == 0


def test_a_reset_over_rest_is_refused_while_rocketmqs_clients_live(
    served: ServedRemoting, client: RemotingClient
) -> None:
    """Afterwards it is possible; the clients' own commits are accepted meanwhile."""
    with served.connect() as member:
        heartbeat(member, "c1")
        for answer in (
            served.http.put(REST, json={"offset": 1}),
            served.http.put(
                "/v1/groups/g/offsets", json={"offsets": [{"topic": "orders", "queue_id": 0, "offset": 1}]}
            ),
        ):
            assert (answer.status_code, answer.json()["reason"]) == (409, "GROUP_ACTIVE")
        assert commit(member, 3) == 0
        assert served.http.put(REST.replace("/g/", "/other/"), json={"offset": 1}).status_code == 200
    until(lambda: served.http.put(REST, json={"offset": 1}).status_code == 200)
    assert group_offset(client) == (0, 1)


def test_commits_are_refused_while_the_group_has_members_of_the_rest_api(
    served: ServedRemoting, client: RemotingClient
) -> None:
    served.http.post("/v1/groups/g/members", json={"topics": ["orders"]}).raise_for_status()
    answer = client.call(RequestCode.UPDATE_CONSUMER_OFFSET, commit_fields(3))
    assert (answer.code, answer.fields["tidemarkReason"]) == (1, "GROUP_ACTIVE")


# -- durability -----------------------------------------------------------------------------------------------------


class Process:
    """A query service of its own, on a known port, that a test kills."""

    def __init__(self, root: Path) -> None:
        self.port = fixed_port()
        settings = {
            "TIDEMARK_STORE_ROOT": str(root),
            "TIDEMARK_QUERY_LISTEN": "127.0.0.1:0",
            "TIDEMARK_QUERY_REMOTING_LISTEN": f"127.0.0.1:{self.port}",
            "TIDEMARK_REMOTING_OFFSET_INTERVAL_MS": "60000",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "services.indexer", "query"],
            env={**os.environ, **settings},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if json.loads(line)["event"] == "query_started":
                return
        raise AssertionError("the service did not start")

    def end(self, *, kill: bool) -> None:
        (self._process.kill if kill else self._process.terminate)()
        self._process.communicate(timeout=60)


@pytest.mark.parametrize("is_killed", [True, False])
def test_an_answered_commit_survives_a_kill_and_an_unanswered_one_a_stop(built: BuiltStore, is_killed: bool) -> None:
    """A consumer that has committed one way reads messages again after a kill; none is lost."""
    process = Process(built.root)
    with RemotingClient(process.port) as client:
        assert commit(client, 3) == 0
        commit_one_way(client, 0, queueId=1)
        assert group_offset(client, queueId=1, setZeroIfNotFound="false") == (0, 0)
        process.end(kill=is_killed)
    assert table(built)["orders@g"] == ({"0": 3} if is_killed else {"0": 3, "1": 0})
    process = Process(built.root)
    with RemotingClient(process.port) as client:
        assert group_offset(client) == (0, 3)
        process.end(kill=True)


# -- queues ---------------------------------------------------------------------------------------------------------


def ask(client: RemotingClient, code: int, queue_id: int = 0, **more: Any) -> int:
    """Return the offset or time of an answer."""
    fields = {"topic": "orders", "queueId": queue_id, **more}
    answer = client.call(code, {name: str(value) for name, value in fields.items()})
    assert answer.code == 0, answer.remark
    return int(answer.fields["timestamp" if code == RequestCode.GET_EARLIEST_MSG_STORETIME else "offset"])


def test_offsets_and_times_of_a_queue_follow_from_its_messages(tmp_path: Path) -> None:
    """The expected answers are computed from the store times alone."""
    store = BuiltStore(tmp_path)
    store.topic("orders", queues=2)
    for at_ms in TIMES:
        store.append("orders", at_ms=at_ms)
    store.publish()
    store.append("orders", b"not visible", at_ms=99_000)
    search, end = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, len(TIMES)
    with serve_query_remoting(store.root) as served, served.connect() as client:
        assert ask(client, RequestCode.GET_MIN_OFFSET) == 0
        assert ask(client, RequestCode.GET_MAX_OFFSET) == ask(client, RequestCode.GET_MAX_OFFSET, committed=True) == end
        assert ask(client, RequestCode.GET_EARLIEST_MSG_STORETIME) == TIMES[0]
        for at_ms in (0, 999, *(at_ms + step for at_ms in TIMES for step in (0, 1))):
            lower = next((number for number, found in enumerate(TIMES) if found >= at_ms), end)
            upper = max((number for number, found in enumerate(TIMES) if found <= at_ms), default=0)
            assert ask(client, search, timestamp=at_ms) == lower
            assert ask(client, search, timestamp=at_ms, boundaryType="UPPER") == upper
        for queue in ({"queue_id": 1}, {"queue_id": 9}, {"topic": "nothing"}):
            assert ask(client, RequestCode.GET_MIN_OFFSET, **queue) == 0
            assert ask(client, RequestCode.GET_MAX_OFFSET, **queue) == 0
            assert ask(client, search, timestamp=1, **queue) == 0
            assert ask(client, RequestCode.GET_EARLIEST_MSG_STORETIME, **queue) == -1


def test_retention_and_deletion_move_the_start_of_a_queue(built: BuiltStore) -> None:
    while built.end < built.log_file_size:
        built.append("orders", bytes(9_000))
    end = built.next["orders", 0]
    last = built.append("orders", b"last")
    built.publish()
    (built.root / "commitlog" / f"{0:020d}").unlink()
    with serve_query_remoting(built.root, query_recheck_ms=20) as served, served.connect() as client:
        least = ask(client, RequestCode.GET_MIN_OFFSET)
        assert end - 1 <= least <= end
        assert last.store_timestamp - 1 <= ask(client, RequestCode.GET_EARLIEST_MSG_STORETIME) <= last.store_timestamp
        built.delete_topic("orders")
        assert ask(client, RequestCode.GET_MAX_OFFSET) == 0
        built.topic("orders", queues=2)
        until(lambda: ask(client, RequestCode.GET_MAX_OFFSET) == end + 1)
        assert ask(client, RequestCode.GET_MIN_OFFSET) == end + 1
        assert ask(client, RequestCode.GET_EARLIEST_MSG_STORETIME) == -1
        hold(client, end + 1)
