from __future__ import annotations

from tests.built_store import BuiltStore
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.routes.fake_forward import AUTHORIZATION, FakeForward
from tests.unit.query.served_app import ServedApp
from tidemark.access.right import Action
from tidemark.errors import TopicExistsError


def test_topics_are_listed_by_name_with_their_kind(service: ServedApp) -> None:
    topics = service.get("/v1/topics").json()["topics"]
    assert [(one["topic"], one["queue_type"], one["queue_ids"]) for one in topics] == [
        ("batches", "BatchCQ", [0]),
        ("orders", "SimpleCQ", [0, 1]),
    ]


def test_a_topic_has_the_bounds_of_each_queue(service: ServedApp) -> None:
    queues = service.get("/v1/topics/orders").json()["queues"]
    assert queues == [
        {"queue_id": 0, "min_offset": 0, "max_offset": MESSAGES},
        {"queue_id": 1, "min_offset": 0, "max_offset": 0},
    ]


def test_without_an_access_file_the_caller_may_do_everything(service: ServedApp) -> None:
    assert service.get("/v1/topics/orders").json()["caller_actions"] == [action.value for action in Action]


def test_the_bounds_of_a_queue_end_with_its_visible_messages(service: ServedApp, built: BuiltStore) -> None:
    path = "/v1/topics/orders/queues/0"
    watermark = service.get(path).json()["watermark"]["physical_offset"]
    built.append("orders")
    assert service.get(path).json()["max_offset"] == MESSAGES
    built.publish()
    queue = service.get(path).json()
    assert queue["max_offset"] == MESSAGES + 1
    assert queue["watermark"]["physical_offset"] == built.end > watermark


def test_a_deleted_topic_is_404_immediately(service: ServedApp, built: BuiltStore) -> None:
    built.delete_topic("batches")
    assert service.get("/v1/topics/batches").status_code == 404
    assert [one["topic"] for one in service.get("/v1/topics").json()["topics"]] == ["orders"]


def test_a_request_for_another_store_is_404(service: ServedApp) -> None:
    for path in ("/v1/topics", "/v1/topics/orders", "/v1/topics/orders/queues/0"):
        assert service.get(path, params={"store": "tidemark-0"}).status_code == 200
        assert service.get(path, params={"store": "tidemark-1"}).status_code == 404


def test_a_topic_is_created_at_the_writer_with_the_callers_authorization(service: ServedApp) -> None:
    forward = FakeForward.put_into(service)
    body = {"topic": "bills", "queues": 3, "attributes": {"queue.type": "BatchCQ"}}
    answer = service.ask("POST", "/v1/topics", json=body, headers={"Authorization": AUTHORIZATION})
    content = answer.json()
    assert (answer.status_code, content["created"], content["queue_type"]) == (201, True, "BatchCQ")
    assert (content["read_queues"], content["queue_ids"]) == (3, [0, 1, 2])
    assert forward.authorizations == [AUTHORIZATION]


def test_an_existing_topic_of_the_same_shape_is_200(service: ServedApp) -> None:
    FakeForward.put_into(service, is_new=False)
    answer = service.ask("POST", "/v1/topics", json={"topic": "bills"})
    assert (answer.status_code, answer.json()["created"]) == (200, False)


def test_a_refusal_of_the_writer_is_returned_to_the_caller(service: ServedApp) -> None:
    FakeForward.put_into(service).failure = TopicExistsError("of another shape")
    answer = service.ask("POST", "/v1/topics", json={"topic": "bills"})
    assert (answer.status_code, answer.json()["reason"]) == (409, "TOPIC_EXISTS")


def test_without_a_writer_no_topic_is_created(service: ServedApp) -> None:
    answer = service.ask("POST", "/v1/topics", json={"topic": "bills"})
    assert (answer.status_code, answer.json()["reason"]) == (503, "WRITER_UNREACHABLE")
