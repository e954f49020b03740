from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp
from tidemark.errors import TopicNotFoundError


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServedApp]:
    built = BuiltStore(tmp_path)
    built.topic("orders")
    with ServedApp(built, query_recheck_ms=20) as served:
        yield served


def test_a_request_for_another_store_is_refused(service: ServedApp) -> None:
    service.state.require_store(None)
    service.state.require_store("tidemark-0")
    with pytest.raises(TopicNotFoundError):
        service.state.require_store("tidemark-1")


def test_members_stay_in_the_group_after_a_restart(tmp_path: Path) -> None:
    built = BuiltStore(tmp_path)
    built.topic("orders")
    body = {"topics": ["orders"], "member_id": "one"}
    with ServedApp(built) as first:
        lease = first.ask("POST", "/v1/groups/g/members", json=body).json()
    with ServedApp(built) as second:
        beat = {"generation": lease["generation"], "holds": []}
        assert second.ask("PUT", "/v1/groups/g/members/one", json=beat).status_code == 200


def test_an_unreadable_members_file_is_ignored(tmp_path: Path) -> None:
    built = BuiltStore(tmp_path)
    built.topic("orders")
    body = {"topics": ["orders"], "member_id": "one"}
    with ServedApp(built) as first:
        first.ask("POST", "/v1/groups/g/members", json=body)
        path = first.state.store.paths.members
    path.write_bytes(path.read_bytes().replace(b'"one"', b"1"))
    with ServedApp(built) as second:
        assert second.ask("POST", "/v1/groups/g/members", json=body).status_code == 201
