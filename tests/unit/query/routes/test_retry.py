from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.access_files import AccessFolder
from tests.built_store import BuiltStore
from tests.unit.query.routes.fake_forward import AUTHORIZATION, FakeForward
from tests.unit.query.served_app import ServedApp
from tidemark.access.access_file import AccessFile
from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.settings.reloaded_files import ReloadedFiles

PATH = "/v1/groups/g/retry"


def place(queue_offset: int, topic: str = "orders") -> dict[str, Any]:
    return {"topic": topic, "queue_id": 0, "queue_offset": queue_offset}


def retry(service: ServedApp, *messages: dict[str, Any], authorization: str = AUTHORIZATION) -> httpx.Response:
    return service.ask("POST", PATH, json={"messages": messages}, headers={"Authorization": authorization})


def test_each_message_is_sent_back_or_has_its_problem(service: ServedApp) -> None:
    forward = FakeForward.put_into(service)
    answer = retry(service, place(3), place(99), place(1, "batches"))
    found, missing, inner = answer.json()["results"]
    assert answer.status_code == 200
    assert (found["sent_back"]["topic"], found["queue_offset"]) == ("%RETRY%g", 3)
    assert (missing["sent_back"], missing["problem"]["reason"]) == (None, "NOT_FOUND")
    assert inner["problem"] is None
    assert {(one.topic, one.queue_offset, one.inner_index) for one in forward.sent_back} == {
        ("orders", 3, None),
        ("batches", 1, 1),
    }
    assert set(forward.authorizations) == {AUTHORIZATION}, "the writer decides by the rights of the caller"


def test_the_result_for_an_id_has_the_offset_of_the_message(service: ServedApp) -> None:
    FakeForward.put_into(service)
    message = service.get("/v1/topics/orders/queues/0/messages", params={"offset": 2}).json()["messages"][0]
    (result,) = retry(service, {"message_id": message["offset_msg_id"]}).json()["results"]
    assert {name: result[name] for name in place(2)} == place(2)


@pytest.mark.parametrize(
    "message", [{}, {"topic": "orders"}, {**place(1), "message_id": "0A"}, {**place(1), "queue_offset": -1}]
)
def test_a_retried_message_needs_either_an_id_or_a_complete_offset(service: ServedApp, message: dict[str, Any]) -> None:
    forward = FakeForward.put_into(service)
    assert retry(service, message).status_code == 422
    assert forward.sent_back == []


def test_more_messages_than_the_setting_allows_are_refused(built: BuiltStore) -> None:
    with ServedApp(built, query_max_retry_messages=2) as service:
        forward = FakeForward.put_into(service)
        answer = retry(service, place(0), place(1), place(2))
    assert (answer.status_code, answer.json()["limit"], forward.sent_back) == (422, 2, [])


def test_access_to_the_topic_is_checked_for_an_id_too(built: BuiltStore, tmp_path: Path) -> None:
    """An id does not give access to a topic that the caller may not read."""
    files = AccessFolder(tmp_path)
    token = files.principal("reader")
    files.rule("reader", ["Sub"], "Group:g", "Topic:batches")
    guard = Guard(
        ReloadedFiles(AccessFile(files.path), every_ms=10_000, on_reload=lambda _: None), RateLimits(), audit=None
    )
    with ServedApp(built) as open_service:
        path = "/v1/topics/orders/queues/0/messages"
        message_id = open_service.get(path).json()["messages"][0]["offset_msg_id"]
    with ServedApp(built, guard=guard) as service:
        forward = FakeForward.put_into(service)
        bearer = f"Bearer {token}"
        assert retry(service, place(0, "batches"), authorization=bearer).status_code == 200
        assert retry(service, place(0), authorization=bearer).status_code == 403
        assert retry(service, {"message_id": message_id}, authorization=bearer).status_code == 403
    assert [one.topic for one in forward.sent_back] == ["batches"]
