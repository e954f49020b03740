"""Groups of RocketMQ's consumers over real connections: members, notices of changes, locks, restarts, two processes."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from tests.built_store import BuiltStore
from tests.query_server import ServedRemoting, serve_query_remoting
from tests.remoting_client import RemotingClient
from tests.waiting import until
from tidemark.remoting import RequestCode
from tidemark.remoting.groups import BrokerQueue, QueueLock, queue_lock_body
from tidemark.remoting.heartbeats import ClientConfig, SubscriptionData, client_config_body

from .calls import commit_fields, group_offset, heartbeat, lock, members, outcome, pull

pytestmark = pytest.mark.integration
QUEUES = 4


def leave(client: RemotingClient, client_id: str, group: str = "g") -> int:
    fields = {"clientID": client_id, "consumerGroup": group, "producerGroup": "p"}
    return client.call(RequestCode.UNREGISTER_CLIENT, fields).code


def unlock(client: RemotingClient, client_id: str, *queue_ids: int, one_way: bool = False) -> None:
    queues = tuple(BrokerQueue("tidemark-0-r", queue_id, "orders") for queue_id in queue_ids)
    body = queue_lock_body(QueueLock(client_id, "g", queues))
    client.send(RequestCode.UNLOCK_BATCH_MQ, {}, body, one_way=one_way)
    if not one_way:
        assert client.receive().code == 0


def noticed(client: RemotingClient) -> str:
    """Wait for a notice that the members of a group have changed; return the group."""
    while not client.notices:
        frame = client.next_frame()
        assert not frame.is_answer
        client.notices.append(frame)
    notice = client.notices.pop(0)
    assert (notice.code, notice.is_one_way) == (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, True)
    return notice.fields["consumerGroup"]


# -- members --------------------------------------------------------------------------------------------------------


def test_a_member_is_listed_once_from_its_first_heartbeat_on(served: ServedRemoting, client: RemotingClient) -> None:
    assert members(client) is None
    heartbeat(client, "c1")
    with served.connect() as second:
        heartbeat(second, "c1")  # another connection of the same client
        heartbeat(second, "c2")
        assert members(client) == ["c1", "c2"]
        assert members(client, "other") is None
    until(lambda: members(client) == ["c1"])


def test_members_are_told_of_joins_and_of_clients_that_leave_or_close(
    served: ServedRemoting, client: RemotingClient
) -> None:
    heartbeat(client, "c1")
    assert noticed(client) == "g"
    with served.connect() as second:
        heartbeat(second, "c2")
        assert noticed(client) == "g"
        assert leave(second, "c2") == 0
        assert noticed(client) == "g"
        assert members(client) == ["c1"]
        heartbeat(second, "c3")
        assert noticed(client) == "g"
    assert noticed(client) == "g"
    assert members(client) == ["c1"]


def test_leaving_a_group_of_which_the_client_is_no_member_is_no_error(client: RemotingClient) -> None:
    assert leave(client, "nobody") == 0


def test_the_rest_api_shows_the_members(served: ServedRemoting, client: RemotingClient) -> None:
    heartbeat(client, "192.0.2.2@1", "billing", orders="A")
    group = served.http.get("/v1/groups/billing").json()
    (member,) = group["clients"]
    assert (member["client_id"], member["address"]) == ("192.0.2.2@1", "127.0.0.1")
    assert {"group": "billing", "topics": ["orders"], "queues": 0, "members": 1} in served.http.get(
        "/v1/groups"
    ).json()["groups"]


def test_groups_and_members_are_limited(built: BuiltStore) -> None:
    limits: dict[str, Any] = {"query_max_groups": 2, "query_max_group_members": 1, "query_max_member_topics": 1}
    with serve_query_remoting(built.root, **limits) as served, served.connect() as client:
        assert heartbeat(client, "c1", "g1").code == 0
        assert heartbeat(client, "c2", "g1").code == 2
        assert heartbeat(client, "c1", "g1").code == 0
        assert heartbeat(client, "c1", "g2").code == 0
        assert heartbeat(client, "c1", "g3").code == 2
        assert heartbeat(client, "c1", "g2", orders="*", batches="*").code == 2


@pytest.mark.parametrize(("kind", "code"), [("TAG", 0), ("SQL92", 1)])
def test_a_subscription_is_checked_at_the_clients_start(client: RemotingClient, kind: str, code: int) -> None:
    config = ClientConfig("c1", "g", SubscriptionData("orders", "a", 1, kind))
    answer = client.call(RequestCode.CHECK_CLIENT_CONFIG, {}, client_config_body(config))
    assert (answer.code, "SQL92" in answer.remark) == (code, code == 1)


# -- locks ----------------------------------------------------------------------------------------------------------


def test_a_queue_is_locked_by_one_client_of_a_group(client: RemotingClient) -> None:
    assert lock(client, "c1", 0, 1) == [0, 1]
    assert lock(client, "c1", 0, 1) == [0, 1]  # renewed
    assert lock(client, "c2", 0, 1, 2) == [2]
    assert lock(client, "c2", 0, group="other") == [0]
    unlock(client, "c2", 0)  # not its own
    unlock(client, "c1", 1)
    assert lock(client, "c2", 0, 1, 2) == [1, 2]
    unlock(client, "c1", 0, one_way=True)
    assert lock(client, "c2", 0) == [0]


def test_locks_are_freed_when_the_client_leaves(client: RemotingClient) -> None:
    heartbeat(client, "c1")
    assert lock(client, "c1", 0) == [0]
    assert leave(client, "c1") == 0
    assert lock(client, "c2", 0) == [0]


def test_locks_are_freed_when_the_last_connection_of_the_client_closes(
    served: ServedRemoting, client: RemotingClient
) -> None:
    """The next consumer need not wait for a minute after a kill."""
    with served.connect() as first:
        heartbeat(first, "c1")
        with served.connect() as second:
            heartbeat(second, "c1")
            assert lock(second, "c1", 0, 1) == [0, 1]
        until(lambda: served.http.get("/metrics").text.count("tidemark_remoting_connections 2.0") == 1)
        assert lock(client, "c2", 0, 1) == []
    until(lambda: lock(client, "c2", 0, 1) == [0, 1])


# -- restarts and several processes ---------------------------------------------------------------------------------


def test_after_a_restart_the_members_of_before_are_listed(built: BuiltStore) -> None:
    """With a part of the list, two members would take the same queues."""
    with contextlib.ExitStack() as later, serve_query_remoting(built.root) as served:
        one, two = (later.enter_context(served.connect()) for _ in range(2))  # still open at the stop
        heartbeat(one, "c1")
        heartbeat(two, "c2")
        heartbeat(two, "c3", "other")
        assert members(one) == ["c1", "c2"]
    with serve_query_remoting(built.root) as served, served.connect() as one, served.connect() as two:
        assert members(one) == ["c1", "c2"]
        heartbeat(one, "c1")
        assert members(one) == ["c1", "c2"]
        heartbeat(one, "c9", "new")
        assert members(one, "new") == ["c9"]
        heartbeat(two, "c2")
        assert members(one) == ["c1", "c2"]
        assert members(one, "other") == ["c3"]


def test_the_process_that_starts_first_has_the_groups(built: BuiltStore) -> None:
    with serve_query_remoting(built.root) as second:
        with serve_query_remoting(built.root) as first, first.connect() as member:
            assert heartbeat(member, "c1").fields["tidemarkReason"] == "STORE_LOCKED"
        with second.connect() as client:
            assert heartbeat(client, "c1").code == 0


def test_a_second_process_has_no_groups_and_the_same_messages_and_offsets(built: BuiltStore) -> None:
    with (
        serve_query_remoting(built.root) as first,
        serve_query_remoting(built.root) as second,
        first.connect() as member,
        second.connect() as client,
    ):
        assert heartbeat(member, "c1").code == 0
        answer = heartbeat(client, "c2")
        assert (answer.code, answer.fields["tidemarkReason"]) == (14, "STORE_LOCKED")
        assert client.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "g"}).code == 14
        assert client.call(RequestCode.UPDATE_CONSUMER_OFFSET, commit_fields(1)).code == 14
        queues = queue_lock_body(QueueLock("c2", "g", (BrokerQueue("x", 0, "orders"),)))
        assert client.call(RequestCode.LOCK_BATCH_MQ, {}, queues).code == 14
        assert pull(client, 0, sysFlag=0).code == 24
        assert outcome(pull(client, 0))[:2] == (0, 10)
        assert member.call(RequestCode.UPDATE_CONSUMER_OFFSET, commit_fields(4)).code == 0
        assert group_offset(client) == (0, 4)
        assert second.http.get("/v1/groups/g").json()["clients"] is None


def test_the_second_process_takes_over_and_lists_the_members_of_the_first(built: BuiltStore) -> None:
    with contextlib.ExitStack() as later:
        with serve_query_remoting(built.root) as first:
            second = later.enter_context(serve_query_remoting(built.root))
            for client_id in ("c1", "c2"):
                member = later.enter_context(first.connect())  # still open when the first process stops
                assert heartbeat(member, client_id).code == 0
        with second.connect() as one, second.connect() as two:
            heartbeat(one, "c1")
            assert members(one) == ["c1", "c2"]
            heartbeat(two, "c2")
            assert members(one) == ["c1", "c2"]
