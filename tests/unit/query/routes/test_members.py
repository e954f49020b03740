from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import ServedApp

MEMBERS, OFFSETS = "/v1/groups/g/members", "/v1/groups/g/offsets"
Lease = dict[str, Any]


def join(service: ServedApp, member_id: str, **more: Any) -> httpx.Response:
    return service.ask("POST", MEMBERS, json={"topics": ["orders"], "member_id": member_id, **more})


def beat(service: ServedApp, lease: Lease, *queue_ids: int) -> httpx.Response:
    holds = [{"topic": "orders", "queue_id": queue_id} for queue_id in queue_ids]
    body = {"generation": lease["generation"], "holds": holds}
    return service.ask("PUT", f"{MEMBERS}/{lease['member_id']}", json=body)


def commit(service: ServedApp, offsets: dict[int, int], lease: Lease | None = None) -> httpx.Response:
    """Set offsets by queue, as the member of *lease* or without a member."""
    member = {} if lease is None else {"member_id": lease["member_id"], "generation": lease["generation"]}
    listed = [{"topic": "orders", "queue_id": queue_id, "offset": offset} for queue_id, offset in offsets.items()]
    return service.ask("PUT", OFFSETS, json={"offsets": listed, **member})


def queues(lease: Lease) -> list[int]:
    return [one["queue_id"] for one in lease["assigned"]]


def test_the_only_member_gets_all_queues_with_the_offsets_of_the_group(service: ServedApp) -> None:
    commit(service, {0: 3})
    answer = join(service, "one")
    lease = answer.json()
    assert answer.status_code == 201
    assert [(one["queue_id"], one["offset"]) for one in lease["assigned"]] == [(0, 3), (1, None)]
    assert (lease["members"], lease["unknown_topics"]) == (["one"], [])


def test_a_member_without_an_id_gets_one(service: ServedApp) -> None:
    ids = {service.ask("POST", MEMBERS, json={"topics": ["orders"]}).json()["member_id"] for _ in range(2)}
    assert len(ids) == 2
    assert all(ids)


def test_a_queue_is_assigned_to_another_member_only_after_its_holder_releases_it(service: ServedApp) -> None:
    one = join(service, "one").json()
    two = join(service, "two").json()
    assert queues(two) == []
    one = beat(service, one, 0, 1).json()
    assert queues(one) == [0]
    assert queues(beat(service, two).json()) == []
    beat(service, one, 0)
    assert queues(beat(service, two).json()) == [1]


def test_a_queue_moves_with_the_offset_of_its_last_holder(service: ServedApp) -> None:
    one = join(service, "one").json()
    two = join(service, "two").json()
    one = beat(service, one, 0, 1).json()
    commit(service, {0: 1}, one)
    service.ask("DELETE", f"{MEMBERS}/one")
    assigned = beat(service, two).json()["assigned"]
    assert {"topic": "orders", "queue_id": 0, "offset": 1} in assigned


def test_a_topic_that_does_not_exist_is_reported_and_found_later(service: ServedApp, built: BuiltStore) -> None:
    lease = join(service, "one", topics=["later"]).json()
    assert (lease["assigned"], lease["unknown_topics"]) == ([], ["later"])
    built.topic("later")
    lease = beat(service, lease).json()
    assert ([one["topic"] for one in lease["assigned"]], lease["unknown_topics"]) == (["later"], [])


def test_a_member_that_has_left_is_fenced(service: ServedApp) -> None:
    lease = join(service, "one").json()
    assert service.ask("DELETE", f"{MEMBERS}/one").status_code == 204
    answer = beat(service, lease, 0)
    assert (answer.status_code, answer.json()["reason"]) == (409, "MEMBER_FENCED")
    assert service.ask("DELETE", f"{MEMBERS}/one").status_code == 204, "an unknown member leaves as well"


def test_a_late_leave_does_not_remove_the_successor(service: ServedApp) -> None:
    old = join(service, "one").json()
    new = join(service, "one").json()
    service.ask("DELETE", f"{MEMBERS}/one", params={"generation": old["generation"]})
    assert beat(service, new, 0, 1).status_code == 200


def test_a_member_with_another_strategy_is_refused(service: ServedApp) -> None:
    join(service, "one")
    answer = join(service, "two", strategy="consistent_hash")
    assert (answer.status_code, answer.json()["reason"]) == (409, "GROUP_STRATEGY_CONFLICT")


def test_offsets_of_one_request_are_set_atomically(service: ServedApp) -> None:
    lease = join(service, "one").json()
    answer = commit(service, {0: 2, 1: 0}, lease)
    assert [one["lag"] for one in answer.json()["offsets"]] == [MESSAGES - 2, 0]
    refused = commit(service, {0: 5, 1: 1}, lease)
    assert refused.status_code == 422
    assert [one["offset"] for one in service.get("/v1/groups/g").json()["queues"]] == [2, 0]


@pytest.mark.parametrize("change", [{"generation": 1}, {"member_id": "other"}])
def test_only_the_holder_sets_offsets(service: ServedApp, change: dict[str, Any]) -> None:
    lease = join(service, "one").json()
    answer = commit(service, {0: 2}, {**lease, **change})
    assert (answer.status_code, answer.json()["reason"]) == (409, "GENERATION_STALE")


def test_offsets_without_a_member_are_refused_while_one_is_alive(service: ServedApp) -> None:
    join(service, "one")
    assert commit(service, {0: 2}).json()["reason"] == "GROUP_ACTIVE"
