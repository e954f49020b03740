"""Consumer groups over HTTP: join, share, hand-over, expiry, and commits that only a holder may make."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.store.originals.topics import load_config

pytestmark = pytest.mark.integration

GROUP = "/v1/groups/billing"
MEMBERS = f"{GROUP}/members"


class Consumer:
    """A member that behaves like a client: it holds the assigned queues, and releases missing ones."""

    def __init__(self, client: httpx.Client, member_id: str, **wishes: Any) -> None:
        self.client = client
        self.path = f"{MEMBERS}/{member_id}"
        body = {"topics": ["orders"], "member_id": member_id, **wishes}
        self.told = self.answer(client.post(MEMBERS, json=body), 201)

    def answer(self, response: httpx.Response, status: int = 200) -> dict[str, Any]:
        assert response.status_code == status, response.text
        content: dict[str, Any] = response.json()
        return content

    @property
    def queues(self) -> list[int]:
        return [one["queue_id"] for one in self.told["assigned"]]

    def heartbeat(self) -> list[int]:
        """Return its queues after a heartbeat that holds at most those it had before."""
        holds = [{"topic": one["topic"], "queue_id": one["queue_id"]} for one in self.told["assigned"]]
        body = {"generation": self.told["generation"], "holds": holds}
        self.told = self.answer(self.client.put(self.path, json=body))
        return self.queues

    def commit(self, *offsets: tuple[int, int]) -> httpx.Response:
        return self.client.put(
            f"{GROUP}/offsets",
            json={
                "member_id": self.told["member_id"],
                "generation": self.told["generation"],
                "offsets": [{"topic": "orders", "queue_id": number, "offset": offset} for number, offset in offsets],
                "force": True,  # most queues are empty
            },
        )


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    """Return a topic `orders` of six queues, ten messages in the first."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders", queues=6)
    for number in range(10):
        store.append("orders", f"m{number}".encode())
    store.publish()
    return store


@pytest.fixture
def client(built: BuiltStore) -> Iterator[httpx.Client]:
    with serve_query(built.root, query_recheck_ms=20) as client:
        yield client


def offset_of(client: httpx.Client, queue_id: int = 0) -> int | None:
    response = client.get(f"{GROUP}/topics/orders/queues/{queue_id}/offset")
    return None if response.status_code == 404 else response.json()["offset"]


def metric(client: httpx.Client, name: str) -> float:
    line = next(line for line in client.get("/metrics").text.splitlines() if line.startswith(f"{name} "))
    return float(line.rpartition(" ")[2])


def reason_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["reason"]


def test_a_join_is_answered_with_queues_and_offsets(client: httpx.Client) -> None:
    """The answer has everything that a client needs to begin; without an id one is generated."""
    client.put(f"{GROUP}/topics/orders/queues/1/offset", json={"offset": 7, "force": True})
    answer = client.post(MEMBERS, json={"topics": ["orders", "later"]})
    assert answer.status_code == 201
    lease = answer.json()
    assert lease.pop("generation") > 1_700_000_000_000
    member_id = lease.pop("member_id")
    assert lease == {
        "store": "tidemark-0", "group": "billing", "session_timeout_ms": 10_000, "heartbeat_interval_ms": 3_333,
        "members": [member_id], "unknown_topics": ["later"],
        "assigned": [{"topic": "orders", "queue_id": i, "offset": 7 if i == 1 else None} for i in range(6)],
    }  # fmt: skip


def test_two_members_share_the_queues_after_the_first_releases_them(client: httpx.Client) -> None:
    """The second member waits for the first; then each has half."""
    a = Consumer(client, "a")
    b = Consumer(client, "b")
    assert (a.queues, b.queues) == ([0, 1, 2, 3, 4, 5], [])
    assert a.heartbeat() == [0, 1, 2]
    assert b.heartbeat() == []
    a.heartbeat()
    assert b.heartbeat() == [3, 4, 5]
    assert a.told["generation"] == b.told["generation"]


def test_a_third_member_joins_without_a_queue_held_twice(client: httpx.Client) -> None:
    """This is checked after every step, in the server's record and in the members' own."""
    members: list[Consumer] = []

    def step(member: Consumer) -> None:
        member.heartbeat()
        own = [queue_id for one in members for queue_id in one.queues]
        held = [held["queue_id"] for one in client.get(GROUP).json()["members"] for held in one["holds"]]
        assert len(own) == len(set(own)), own
        assert len(held) == len(set(held)), held

    for name in ("a", "b", "c"):
        members.append(Consumer(client, name))
        for _ in range(3):
            for member in members:
                step(member)
    assert [member.queues for member in members] == [[0, 1], [2, 3], [4, 5]]


def test_a_moved_queue_is_committed_before_it_goes(client: httpx.Client) -> None:
    """Its holder may commit until it has released the queue; the next one gets that offset."""
    a = Consumer(client, "a")
    b = Consumer(client, "b")
    assert a.heartbeat() == [0, 1, 2]
    assert a.commit((4, 33)).status_code == 200
    a.heartbeat()
    assert reason_of(a.commit((4, 44))) == (409, "GENERATION_STALE")
    b.heartbeat()
    assert {one["queue_id"]: one["offset"] for one in b.told["assigned"]} == {3: None, 4: 33, 5: None}


def test_a_leaving_member_releases_its_queues(client: httpx.Client) -> None:
    """They are free at once; an unknown member may leave as well."""
    a = Consumer(client, "a")
    b = Consumer(client, "b")
    response = client.delete(a.path)
    assert (response.status_code, response.content) == (204, b"")
    assert b.heartbeat() == [0, 1, 2, 3, 4, 5]
    assert client.delete(a.path).status_code == 204
    assert client.delete("/v1/groups/nobody/members/a").status_code == 204


def test_a_replaced_member_cannot_remove_its_successor(client: httpx.Client) -> None:
    """The replaced member leaves with the generation that it knows."""
    old = Consumer(client, "a")
    new = Consumer(client, "a")
    client.delete(old.path, params={"generation": old.told["generation"]})
    assert new.heartbeat() == [0, 1, 2, 3, 4, 5]
    client.delete(new.path, params={"generation": new.told["generation"]})
    assert client.get(GROUP).status_code == 404


def test_an_expired_session_releases_its_queues(client: httpx.Client) -> None:
    """A GET shows it, the other member gets them, and the late commit gets 409 and changes nothing."""
    late = Consumer(client, "a", session_timeout_ms=1000)
    other = Consumer(client, "b")
    assert late.commit((0, 3)).status_code == 200
    time.sleep(1.1)
    group = client.get(GROUP).json()
    assert [member["member_id"] for member in group["members"]] == ["b"]
    assert group["generation"] == other.told["generation"] + 1
    refused = late.commit((0, 9), (1, 9))
    assert reason_of(refused) == (409, "GENERATION_STALE")
    assert refused.json()["generation"] == group["generation"]
    assert (offset_of(client, 0), offset_of(client, 1)) == (3, None)
    body = {"generation": late.told["generation"], "holds": []}
    assert reason_of(client.put(late.path, json=body)) == (409, "MEMBER_FENCED")
    assert other.heartbeat() == [0, 1, 2, 3, 4, 5]
    assert other.told["assigned"][0]["offset"] == 3


def test_a_timer_removes_expired_sessions(client: httpx.Client) -> None:
    """Metrics show it without a request for the group."""
    Consumer(client, "a", session_timeout_ms=1000)
    deadline = time.monotonic() + 10
    while metric(client, "tidemark_query_group_rebalances_total") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_join_with_the_id_of_a_live_member_replaces_it(client: httpx.Client) -> None:
    """The last one to join has it; the older one can neither commit nor renew its session."""
    old = Consumer(client, "a")
    new = Consumer(client, "a")
    assert new.queues == [0, 1, 2, 3, 4, 5]
    assert reason_of(old.commit((0, 1))) == (409, "GENERATION_STALE")
    body = {"generation": old.told["generation"], "holds": []}
    assert reason_of(client.put(old.path, json=body)) == (409, "MEMBER_FENCED")
    assert new.commit((0, 2)).status_code == 200


def test_many_offsets_are_committed_in_one_request(built: BuiltStore, client: httpx.Client) -> None:
    """They are in one write of the file; the answer has each one's bounds."""
    a = Consumer(client, "a")
    answer = a.commit(*((queue_id, queue_id + 1) for queue_id in range(6)))
    content = answer.json()
    assert (answer.status_code, content["group"], content["generation"]) == (200, "billing", a.told["generation"])
    assert content["offsets"][0] == {
        "topic": "orders", "queue_id": 0, "offset": 1, "min_offset": 0, "max_offset": 10, "below_min": 0, "lag": 9,
    }  # fmt: skip
    stored = load_config(built.root / "config" / "consumerOffset.json")
    assert stored["offsetTable"] == {"orders@billing": {str(queue_id): queue_id + 1 for queue_id in range(6)}}
    assert stored["dataVersion"]["counter"] == 1


def test_a_commit_with_one_foreign_queue_is_refused_completely(client: httpx.Client) -> None:
    """If one queue is not held, nothing of the commit is written."""
    a = Consumer(client, "a")
    Consumer(client, "b")
    a.heartbeat()
    a.heartbeat()
    assert reason_of(a.commit((0, 5), (3, 5))) == (409, "GENERATION_STALE")
    assert offset_of(client, 0) is None


def test_only_the_last_generation_can_commit(client: httpx.Client) -> None:
    """An older one is refused, and the facts have the current one."""
    a = Consumer(client, "a")
    Consumer(client, "b")
    old = a.told["generation"]
    assert a.commit((0, 1)).status_code == 200
    a.heartbeat()
    a.told, now = {**a.told, "generation": old}, a.told["generation"]
    refused = a.commit((0, 2))
    assert reason_of(refused) == (409, "GENERATION_STALE")
    assert refused.json()["generation"] == now > old
    assert offset_of(client) == 1


def test_a_reset_is_refused_while_the_group_has_members(client: httpx.Client) -> None:
    """This holds for one or many offsets; after all members have left, the reset succeeds."""
    single, many = f"{GROUP}/topics/orders/queues/0/offset", f"{GROUP}/offsets"
    offsets = [{"topic": "orders", "queue_id": queue_id, "offset": 4} for queue_id in range(2)]
    body = {"offsets": offsets, "force": True}
    a = Consumer(client, "a")
    assert reason_of(client.put(many, json=body)) == (409, "GROUP_ACTIVE")
    assert reason_of(client.put(single, json={"offset": 4})) == (409, "GROUP_ACTIVE")
    assert offset_of(client) is None
    client.delete(a.path)
    answer = client.put(many, json=body)
    assert (answer.status_code, answer.json()["generation"]) == (200, None)
    assert (offset_of(client, 0), offset_of(client, 1)) == (4, 4)
    offsets.append({"topic": "orders", "queue_id": 6, "offset": 9})
    assert client.put(many, json=body).status_code == 404


def test_an_orderly_restart_keeps_members(built: BuiltStore) -> None:
    """Holders and their right to commit are kept; the table is used once."""
    with serve_query(built.root) as client:
        a, b = Consumer(client, "a"), Consumer(client, "b")
        a.heartbeat()
        held = [a.heartbeat(), b.heartbeat()]
        assert sorted([*held[0], *held[1]]) == [0, 1, 2, 3, 4, 5]
        generation = a.told["generation"]
    with serve_query(built.root) as client:
        a.client = b.client = client
        assert not members_file(built).exists()
        assert a.commit((held[0][0], 8)).status_code == 200
        assert reason_of(a.commit((held[1][0], 8))) == (409, "GENERATION_STALE")
        assert [a.heartbeat(), b.heartbeat()] == held
        assert a.told["generation"] == generation
        assert Consumer(client, "c").told["generation"] > generation


@pytest.mark.parametrize(
    "left",
    [b"{", b"[]", b"{}", b'{"version": 1, "boot_id": "of another start of the machine", "groups": {"billing": {}}}'],
)
def test_an_invalid_members_file_is_discarded(built: BuiltStore, left: bytes) -> None:
    """It is torn, of another version, or from an earlier boot: members join again."""
    with serve_query(built.root) as client:
        before = Consumer(client, "a")
    members_file(built).write_bytes(left)
    with serve_query(built.root) as client:
        before.client = client
        assert reason_of(before.commit((0, 9))) == (409, "GENERATION_STALE")
        assert not members_file(built).exists()


def members_file(built: BuiltStore) -> Path:
    return built.root / "tidemark" / "query" / "members.json"


def test_a_kill_keeps_offsets_and_drops_members(built: BuiltStore) -> None:
    """Members join again, in a greater generation, and continue at the group's offsets."""
    with serve_query(built.root) as client:
        before = Consumer(client, "a")
        before.commit((0, 8))
    members_file(built).unlink()  # a killed process leaves none
    with serve_query(built.root) as client:
        before.client = client
        assert reason_of(before.commit((0, 9))) == (409, "GENERATION_STALE")
        body = {"generation": before.told["generation"], "holds": []}
        assert reason_of(client.put(before.path, json=body)) == (409, "MEMBER_FENCED")
        after = Consumer(client, "a")
        assert after.told["generation"] > before.told["generation"]
        assert after.told["assigned"][0] == {"topic": "orders", "queue_id": 0, "offset": 8}


def test_another_process_takes_over(built: BuiltStore) -> None:
    """When the owner of the groups has stopped, its members are members there; others join after them."""
    with contextlib.ExitStack() as owner:
        member = Consumer(owner.enter_context(serve_query(built.root)), "a")
        with serve_query(built.root) as other:
            member.commit((0, 8))
            owner.close()
            member.client = other
            assert member.heartbeat() == [0, 1, 2, 3, 4, 5]
            assert member.told["assigned"][0]["offset"] == 8
            after = Consumer(other, "a")
            assert after.told["generation"] > member.told["generation"]


def test_only_one_process_serves_the_groups(built: BuiltStore, client: httpx.Client) -> None:
    """Another process answers 503, returns offsets, and reports that it does not know the members."""
    a = Consumer(client, "a")
    a.commit((0, 2))
    with serve_query(built.root) as second:
        locked = (503, "STORE_LOCKED")
        assert reason_of(second.post(MEMBERS, json={"topics": ["orders"]})) == locked
        assert reason_of(second.put(a.path, json={"generation": 1, "holds": []})) == locked
        assert reason_of(second.delete(a.path)) == locked
        a.client = second
        assert reason_of(a.commit((0, 3))) == locked
        group = second.get(GROUP).json()
        assert (group["members"], group["generation"], group["queues"][0]["offset"]) == (None, None, 2)
        assert second.get("/v1/groups").json()["groups"][0]["members"] is None


def test_topics_and_queues_created_later_are_found(built: BuiltStore, client: httpx.Client) -> None:
    """They are found at the next heartbeat, in a new generation."""
    a = Consumer(client, "a", topics=["later", "orders"])
    first = a.told["generation"]
    assert a.told["unknown_topics"] == ["later"]
    built.topic("later", queues=1)
    built.topic("orders", queues=7)
    a.heartbeat()
    assert [(one["topic"], one["queue_id"]) for one in a.told["assigned"]][:1] == [("later", 0)]
    assert (len(a.told["assigned"]), a.told["unknown_topics"], a.told["generation"]) == (8, [], first + 1)


def test_queues_are_assigned_by_consistent_hash(client: httpx.Client) -> None:
    """Every queue has one holder; a second strategy is refused."""
    members = [Consumer(client, name, strategy="consistent_hash") for name in ("a", "b", "c")]
    for _ in range(3):
        for member in members:
            member.heartbeat()
    assert sorted(queue_id for member in members for queue_id in member.queues) == [0, 1, 2, 3, 4, 5]
    conflict = client.post(MEMBERS, json={"topics": ["orders"], "strategy": "averagely"})
    assert reason_of(conflict) == (409, "GROUP_STRATEGY_CONFLICT")


def test_a_group_shows_its_members(client: httpx.Client) -> None:
    """It shows them before it has any offset; the list counts them."""
    Consumer(client, "b", topics=["orders", "later"])
    Consumer(client, "a", strategy="averagely", session_timeout_ms=2000)
    group = client.get(GROUP).json()
    assert (group["strategy"], group["queues"], group["lag"]) == ("averagely", [], 0)
    a, b = group["members"]
    assert 0 <= a.pop("heartbeat_age_ms") < 2000
    assert a == {"member_id": "a", "topics": ["orders"], "session_timeout_ms": 2000, "holds": []}
    assert b["holds"] == [{"topic": "orders", "queue_id": queue_id} for queue_id in range(6)]
    assert client.get("/v1/groups").json()["groups"] == [
        {"group": "billing", "topics": ["later", "orders"], "queues": 0, "members": 2}
    ]


def test_group_metrics_are_served(client: httpx.Client) -> None:
    """They are members, generation, rebalances and refused commits."""
    a = Consumer(client, "a")
    assert a.commit((17, 1)).status_code == 409
    assert metric(client, 'tidemark_query_group_members{consumer_group="billing"}') == 1
    assert metric(client, 'tidemark_query_group_generation{consumer_group="billing"}') == a.told["generation"]
    assert metric(client, "tidemark_query_group_rebalances_total") == 1
    assert metric(client, "tidemark_query_fenced_commits_total") == 1


def test_requests_above_the_group_limits_are_refused(built: BuiltStore) -> None:
    """There are limits of members, groups, topics and queues of a commit."""
    limits = {
        "query_max_groups": 1, "query_max_group_members": 1, "query_max_member_topics": 2, "query_max_commit_queues": 2,
    }  # fmt: skip
    with serve_query(built.root, **limits) as client:
        a = Consumer(client, "a")
        join = {"topics": ["orders"]}
        assert reason_of(client.post(MEMBERS, json=join)) == (429, "GROUP_FULL")
        assert reason_of(client.post("/v1/groups/audit/members", json=join)) == (429, "GROUP_FULL")
        assert reason_of(client.post(MEMBERS, json={"topics": ["a", "b", "c"]})) == (422, "ARGUMENT_ILLEGAL")
        assert reason_of(a.commit((0, 1), (1, 1), (2, 1))) == (422, "ARGUMENT_ILLEGAL")
        assert a.commit((0, 1), (1, 1)).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"topics": []}, {"topics": ["or.ders"]}, {"topics": "orders"}, {"topics": ["orders"], "strategy": "best"},
        {"topics": ["orders"], "session_timeout_ms": 99}, {"topics": ["orders"], "session_timeout_ms": 300_001},
        {"topics": ["orders"], "session_timeout_ms": "1000"}, {"topics": ["orders"], "member_id": "a b"},
        {"topics": ["orders"], "member_id": ""}, {"topics": ["orders"], "member_id": "a" * 256},
        {"topics": ["orders"], "member_id": "a\n"}, {"topics": ["orders"], "x": 1},
    ],
)  # fmt: skip
def test_invalid_joins_are_refused(client: httpx.Client, wrong: dict[str, Any]) -> None:
    assert reason_of(client.post(MEMBERS, json=wrong)) == (422, "ARGUMENT_ILLEGAL")
    assert client.get(GROUP).status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"offsets": []}, {"offsets": [{"topic": "orders", "queue_id": 0}]},
        {"offsets": [{"topic": "orders", "queue_id": 0, "offset": -1}]},
        {"offsets": [{"topic": "orders", "queue_id": -1, "offset": 1}]},
        {"offsets": [{"topic": "orders", "queue_id": True, "offset": 1}]},
        {"offsets": [{"topic": "orders", "queue_id": 0, "offset": 1}] * 2},
        {"member_id": "a", "offsets": [{"topic": "orders", "queue_id": 0, "offset": 1}]},
        {"generation": 1, "offsets": [{"topic": "orders", "queue_id": 0, "offset": 1}]},
    ],
)  # fmt: skip
def test_invalid_commits_are_refused(client: httpx.Client, wrong: dict[str, Any]) -> None:
    assert reason_of(client.put(f"{GROUP}/offsets", json=wrong)) == (422, "ARGUMENT_ILLEGAL")


@pytest.mark.parametrize(
    "body", [{}, {"generation": 1}, {"generation": "1", "holds": []}, {"generation": 1, "holds": [1]}]
)
def test_invalid_heartbeats_are_refused(client: httpx.Client, body: dict[str, Any]) -> None:
    assert reason_of(client.put(f"{MEMBERS}/a", json=body)) == (422, "ARGUMENT_ILLEGAL")
    assert reason_of(client.put(f"{MEMBERS}/a%20b", json={"generation": 1, "holds": []})) == (422, "ARGUMENT_ILLEGAL")


def test_concurrent_members_lose_no_offset(client: httpx.Client) -> None:
    """Three members join, leave and commit concurrently: each continues at the last committed offset."""
    failures: list[str] = []
    seen = dict.fromkeys(range(6), 0)  # the greatest acknowledged offset

    def consume(name: str) -> None:
        with httpx.Client(base_url=client.base_url, timeout=60) as own:
            for _ in range(4):
                member = Consumer(own, name)
                for _ in range(6):
                    for one in member.told["assigned"]:
                        queue_id, offset = one["queue_id"], (one["offset"] or 0) + 1
                        if one["offset"] is not None and one["offset"] < seen[queue_id]:
                            failures.append(f"{name} was given {one} behind {seen[queue_id]}")
                        if member.commit((queue_id, offset)).status_code == 200:
                            seen[queue_id] = offset
                    member.heartbeat()
                own.delete(member.path)

    threads = [threading.Thread(target=consume, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert {queue_id: offset_of(client, queue_id) or 0 for queue_id in seen} == seen
    assert sum(seen.values()) > 20
