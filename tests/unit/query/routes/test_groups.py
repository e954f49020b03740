from __future__ import annotations

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.unit.query.remoting.desk import consumer, groups_of
from tests.unit.query.remoting.desk import join as join_as_client
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import ServedApp


def path(group: str = "g", topic: str = "orders", queue_id: int = 0) -> str:
    return f"/v1/groups/{group}/topics/{topic}/queues/{queue_id}/offset"


def put(service: ServedApp, offset: int, to: str = path(), *, force: bool = False) -> httpx.Response:
    return service.ask("PUT", to, json={"offset": offset, "force": force})


def join(service: ServedApp, group: str = "g") -> None:
    answer = service.ask("POST", f"/v1/groups/{group}/members", json={"topics": ["orders"], "member_id": "one"})
    assert answer.status_code == 201, answer.text


def test_an_offset_that_was_set_is_returned_with_its_lag(service: ServedApp) -> None:
    answer = put(service, 2)
    assert (answer.status_code, answer.json()["lag"]) == (200, MESSAGES - 2)
    assert service.get(path()).json() == answer.json()


def test_an_offset_survives_a_restart(service: ServedApp, built: BuiltStore) -> None:
    put(service, 4)
    with ServedApp(built) as other:
        assert other.get(path()).json()["offset"] == 4


def test_an_offset_may_be_set_back(service: ServedApp) -> None:
    put(service, 4)
    put(service, 1)
    assert service.get(path()).json()["offset"] == 1


def test_an_offset_above_the_end_needs_force(service: ServedApp) -> None:
    refused = put(service, MESSAGES + 1)
    assert (refused.status_code, refused.json()["max_offset"]) == (422, MESSAGES)
    assert service.get(path()).status_code == 404
    assert put(service, MESSAGES + 1, force=True).status_code == 200
    assert service.get(path()).json()["offset"] == MESSAGES + 1


@pytest.mark.parametrize(
    ("to", "reason"),
    [(path(topic="nothing"), "TOPIC_NOT_FOUND"), (path(queue_id=9), "QUEUE_ID_ILLEGAL"), (path(), "NOT_FOUND")],
)
def test_a_missing_offset_is_404_with_a_reason(service: ServedApp, to: str, reason: str) -> None:
    answer = service.get(to)
    assert (answer.status_code, answer.json()["reason"]) == (404, reason)


def test_an_offset_put_without_a_member_is_refused_while_the_group_is_active(service: ServedApp) -> None:
    join(service)
    answer = put(service, 2)
    assert (answer.status_code, answer.json()["reason"]) == (409, "GROUP_ACTIVE")
    assert service.get(path()).status_code == 404


def test_another_process_may_not_set_offsets(service: ServedApp, built: BuiltStore) -> None:
    put(service, 2)
    with ServedApp(built) as other:
        answer = put(other, 3)
    assert (answer.status_code, answer.json()["reason"]) == (503, "STORE_LOCKED")
    assert service.get(path()).json()["offset"] == 2


def test_the_lag_of_a_group_is_the_sum_over_its_queues(service: ServedApp) -> None:
    put(service, 2)
    put(service, 0, path(queue_id=1))
    put(service, 1, path(topic="batches"))
    group = service.get("/v1/groups/g").json()
    assert [(queue["topic"], queue["queue_id"], queue["lag"]) for queue in group["queues"]] == [
        ("batches", 0, 2),
        ("orders", 0, 4),
        ("orders", 1, 0),
    ]
    assert (group["lag"], group["generation"], group["members"]) == (6, None, [])


def test_a_group_with_members_and_no_offsets_is_found(service: ServedApp) -> None:
    join(service)
    (member,) = service.get("/v1/groups/g").json()["members"]
    assert (member["member_id"], member["topics"]) == ("one", ["orders"])
    assert [queue["queue_id"] for queue in member["holds"]] == [0, 1]


def test_a_group_without_offsets_and_members_is_not_found(service: ServedApp) -> None:
    assert service.get("/v1/groups/g").status_code == 404


def test_groups_with_offsets_or_members_are_listed_by_name(service: ServedApp) -> None:
    put(service, 1, path("offsets", "batches"))
    join(service, "members")
    groups = service.get("/v1/groups").json()["groups"]
    assert groups == [
        {"group": "members", "topics": ["orders"], "queues": 0, "members": 1},
        {"group": "offsets", "topics": ["batches"], "queues": 1, "members": 0},
    ]


def test_members_of_another_process_are_not_counted(service: ServedApp, built: BuiltStore) -> None:
    """Only the process that owns the offsets knows them: null, and not 0."""
    put(service, 1)
    with ServedApp(built) as other:
        assert [group["members"] for group in other.get("/v1/groups").json()["groups"]] == [None]


def test_rocketmqs_clients_are_members_of_their_group(service: ServedApp) -> None:
    """The group needs neither offsets nor members of the REST API to be found."""
    clients = service.state.groups.clients = groups_of(service)
    for client_id in ("c2", "c1"):
        join_as_client(service, clients, consumer("g"), client_id)
    group = service.get("/v1/groups/g").json()
    assert [(client["client_id"], client["address"]) for client in group["clients"]] == [
        ("c1", "127.0.0.1"),
        ("c2", "127.0.0.1"),
    ]
    assert all(0 <= client["heartbeat_age_ms"] < 60_000 for client in group["clients"])
    assert (group["members"], group["queues"], group["generation"]) == ([], [], None)
    assert service.get("/v1/groups").json()["groups"] == [
        {"group": "g", "topics": ["orders"], "queues": 0, "members": 2}
    ]
    assert service.get("/v1/groups/other").status_code == 404


def test_offsets_of_a_group_with_rocketmqs_clients_are_not_reset(service: ServedApp) -> None:
    clients = service.state.groups.clients = groups_of(service)
    join_as_client(service, clients, consumer("g"))
    answer = put(service, 2)
    assert (answer.status_code, answer.json()["reason"], answer.json()["members"]) == (409, "GROUP_ACTIVE", 1)
    assert put(service, 2, path("other")).status_code == 200
