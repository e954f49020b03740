from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from services.indexer.query.schema.responses import (
    CorruptionsAnswer,
    MessagesAnswer,
    OffsetByTimeAnswer,
    ProblemAnswer,
    PullAnswer,
    PullsAnswer,
    QueueDetailAnswer,
    SearchAnswer,
    TopicCreatedAnswer,
    TopicDetailAnswer,
    TopicsAnswer,
    WatermarkDetailAnswer,
)
from tests.built_store import BuiltStore
from tests.unit.query.routes.conftest import built, service
from tests.unit.query.routes.fake_forward import FakeForward
from tests.unit.query.schema.described import require_described
from tests.unit.query.served_app import ServedApp

__all__ = ["built", "service"]  # fixtures
QUEUE = "/v1/topics/orders/queues/0"


@pytest.mark.parametrize(
    ("path", "model"),
    [
        (f"{QUEUE}/messages?body_encoding=utf8", PullAnswer),
        (f"{QUEUE}/messages?offset=latest", PullAnswer),
        ("/v1/topics/batches/queues/0/messages?body_encoding=json", PullAnswer),
        (f"{QUEUE}/offset?time=0", OffsetByTimeAnswer),
        (f"{QUEUE}/offset?time=9999999999999", OffsetByTimeAnswer),
        (QUEUE, QueueDetailAnswer),
        ("/v1/messages/at/0", MessagesAnswer),
        ("/v1/topics/orders/messages?key=all&limit=2", SearchAnswer),
        ("/v1/topics/orders/messages", SearchAnswer),
        ("/v1/topics", TopicsAnswer),
        ("/v1/topics/orders", TopicDetailAnswer),
        ("/v1/watermark", WatermarkDetailAnswer),
        ("/v1/corruptions", CorruptionsAnswer),
    ],
)
def test_answers_match_their_schema(service: ServedApp, path: str, model: type[BaseModel]) -> None:
    answer = service.get(path)
    assert answer.status_code == 200, answer.text
    require_described(model, answer.json())


def test_damage_answers_match_their_schema(service: ServedApp, built: BuiltStore) -> None:
    built.write_log(88, b"D")  # the first byte of the first body
    pulled = service.get(f"{QUEUE}/messages").json()
    assert pulled["skipped"]
    require_described(PullAnswer, pulled)
    damage = service.get("/v1/corruptions").json()
    assert damage["lost_units"]
    require_described(CorruptionsAnswer, damage)


def test_multi_pull_and_topic_created_answers_match_their_schema(service: ServedApp) -> None:
    queues = [{"topic": "orders", "queue_id": 0, "offset": 0}]
    require_described(PullsAnswer, service.ask("POST", "/v1/pull", json={"queues": queues}).json())
    FakeForward.put_into(service)
    require_described(TopicCreatedAnswer, service.ask("POST", "/v1/topics", json={"topic": "bills"}).json())


@pytest.mark.parametrize(
    "path", ["/v1/nothing", "/v1/topics/nothing", "/v1/topics?color=red", f"{QUEUE}/messages?offset=99"]
)
def test_problem_answers_match_their_schema(service: ServedApp, path: str) -> None:
    answer = service.get(path)
    assert answer.status_code >= 400
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    require_described(ProblemAnswer, problem)
    assert problem["status"] == answer.status_code
    assert problem["request_id"] == answer.headers["X-Request-Id"]


def test_the_documented_pull_example_matches_its_schema() -> None:
    for example in PullAnswer.model_json_schema()["examples"]:
        require_described(PullAnswer, example)
