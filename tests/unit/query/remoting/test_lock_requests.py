from __future__ import annotations

import pytest

from services.indexer.query.remoting.lock_requests import LockRequests
from services.indexer.query.remoting.queue_locks import QueueLocks
from tests.unit.query.remoting.desk import Desk
from tests.unit.query.served_app import ServedApp
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.codes import ResponseCode
from tidemark.remoting.groups import BrokerQueue, QueueLock, parse_locked_queues, queue_lock_body

QUEUES = tuple(BrokerQueue("tidemark-0-r", number, "orders") for number in range(3))


@pytest.fixture
def desk(service: ServedApp) -> Desk:
    return Desk(service, LockRequests(QueueLocks(), max_queues=len(QUEUES)).handlers())


def asked(desk: Desk, code: int, client_id: str, *queues: BrokerQueue) -> Frame:
    return desk.ask(code, body=queue_lock_body(QueueLock(client_id, "g", queues)))


def lock(desk: Desk, client_id: str, *queues: BrokerQueue) -> tuple[BrokerQueue, ...]:
    answer = asked(desk, RequestCode.LOCK_BATCH_MQ, client_id, *queues)
    assert answer.code == ResponseCode.SUCCESS
    return parse_locked_queues(answer.body)


def test_granted_queues_are_returned_as_the_client_named_them(desk: Desk) -> None:
    other_name = BrokerQueue("another-name", 2, "orders")
    assert lock(desk, "c1", QUEUES[0], other_name) == (QUEUES[0], other_name)


def test_queues_of_another_client_are_left_out(desk: Desk) -> None:
    lock(desk, "c1", *QUEUES[:2])
    assert lock(desk, "c2", *QUEUES) == QUEUES[2:]


def test_a_released_queue_can_be_locked_by_another_client(desk: Desk) -> None:
    lock(desk, "c1", *QUEUES)
    released = asked(desk, RequestCode.UNLOCK_BATCH_MQ, "c1", QUEUES[1])
    assert (released.code, bytes(released.body)) == (ResponseCode.SUCCESS, b"")
    assert lock(desk, "c2", *QUEUES) == (QUEUES[1],)


def test_queues_are_released_by_a_request_that_is_one_way(desk: Desk) -> None:
    lock(desk, "c1", *QUEUES)
    desk.tell(RequestCode.UNLOCK_BATCH_MQ, body=queue_lock_body(QueueLock("c1", "g", QUEUES)))
    assert lock(desk, "c2", *QUEUES) == QUEUES


@pytest.mark.parametrize("code", [RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ])
def test_too_many_queues_in_one_request_are_refused(desk: Desk, code: int) -> None:
    answer = asked(desk, code, "c1", *QUEUES, BrokerQueue("x", 9, "orders"))
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "4 queues in one request, at most 3" in answer.remark
    assert lock(desk, "c2", *QUEUES) == QUEUES


def test_a_body_that_is_no_json_is_refused(desk: Desk) -> None:
    answer = desk.ask(RequestCode.LOCK_BATCH_MQ, body=b"{")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.fields["tidemarkReason"] == "FIELD_ILLEGAL"
