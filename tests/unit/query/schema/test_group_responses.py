from __future__ import annotations

import pytest
from pydantic import BaseModel

from services.indexer.query.schema.group_responses import (
    GroupAnswer,
    GroupOffsetsAnswer,
    GroupQueueAnswer,
    GroupsAnswer,
    LeaseAnswer,
)
from tests.unit.query.routes.conftest import built, service
from tests.unit.query.schema.described import require_described
from tests.unit.query.served_app import ServedApp

__all__ = ["built", "service"]  # fixtures
GROUP = "/v1/groups/g"
OFFSET = f"{GROUP}/topics/orders/queues/0/offset"


def join(service: ServedApp) -> dict[str, object]:
    body = {"topics": ["orders", "later"], "member_id": "one"}
    lease: dict[str, object] = service.ask("POST", f"{GROUP}/members", json=body).json()
    return lease


def test_lease_answers_match_their_schema(service: ServedApp) -> None:
    service.ask("PUT", OFFSET, json={"offset": 1})
    lease = join(service)
    require_described(LeaseAnswer, lease)
    body = {"generation": lease["generation"], "holds": []}
    require_described(LeaseAnswer, service.ask("PUT", f"{GROUP}/members/one", json=body).json())


@pytest.mark.parametrize(
    ("path", "model"), [(GROUP, GroupAnswer), ("/v1/groups", GroupsAnswer), (OFFSET, GroupQueueAnswer)]
)
@pytest.mark.parametrize("has_members", [False, True])
def test_group_answers_match_their_schema(
    service: ServedApp,
    path: str,
    model: type[BaseModel],
    has_members: bool,
) -> None:
    require_described(GroupQueueAnswer, service.ask("PUT", OFFSET, json={"offset": 1}).json())
    if has_members:
        join(service)
    require_described(model, service.get(path).json())


def test_offset_answers_match_their_schema(service: ServedApp) -> None:
    body = {"offsets": [{"topic": "orders", "queue_id": 1, "offset": 0}]}
    require_described(GroupOffsetsAnswer, service.ask("PUT", f"{GROUP}/offsets", json=body).json())
