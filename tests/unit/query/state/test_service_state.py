from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.indexer.query.state.service_state import steady
from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp
from tidemark.errors import TopicNotFoundError
from tidemark.read.cached import NotCachedError, is_cached_only
from tidemark.read.unit_run import UnitsGoneError
from tidemark.tracing.request_id import begin_request, current_request_id


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServedApp]:
    built = BuiltStore(tmp_path)
    built.topic("orders")
    with ServedApp(built, query_recheck_ms=20) as served:
        yield served


class Expiring:
    """A look that finds its files gone for the first *times* calls."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> str:
        if self.left:
            self.left -= 1
            raise UnitsGoneError("expired")
        return "found"


def test_a_look_whose_files_expire_is_repeated() -> None:
    assert steady(Expiring(2)) == "found"


def test_a_look_whose_files_are_always_gone_ends() -> None:
    with pytest.raises(UnitsGoneError):
        steady(Expiring(1_000_000))


def test_a_read_runs_on_a_thread_within_the_request(service: ServedApp) -> None:
    async def read() -> tuple[int, str | None]:
        begin_request("order-17")
        return await service.facade.read(lambda: (threading.get_ident(), current_request_id()))

    thread, request_id = service.run(read())
    assert (thread != threading.get_ident(), request_id) == (True, "order-17")


def test_a_read_in_place_stays_on_the_event_loop_if_everything_is_in_memory(service: ServedApp) -> None:
    assert service.run(service.facade.read_in_place(threading.get_ident)) == threading.get_ident()


def test_a_read_in_place_moves_to_a_thread_if_it_needs_the_disk(service: ServedApp) -> None:
    def look() -> int:
        if is_cached_only():
            raise NotCachedError
        return threading.get_ident()

    assert service.run(service.facade.read_in_place(look)) != threading.get_ident()


def test_a_request_may_name_this_store_or_none(service: ServedApp) -> None:
    service.facade.require_store(None)
    service.facade.require_store("tidemark-0")
    with pytest.raises(TopicNotFoundError):
        service.facade.require_store("tidemark-1")


def test_members_are_left_to_the_next_process(tmp_path: Path) -> None:
    built = BuiltStore(tmp_path)
    built.topic("orders")
    body = {"topics": ["orders"], "member_id": "one"}
    with ServedApp(built) as first:
        lease = first.ask("POST", "/v1/groups/g/members", json=body).json()
    with ServedApp(built) as second:
        beat = {"generation": lease["generation"], "holds": []}
        assert second.ask("PUT", "/v1/groups/g/members/one", json=beat).status_code == 200


def test_a_table_of_members_that_cannot_be_read_is_not_used(tmp_path: Path) -> None:
    built = BuiltStore(tmp_path)
    built.topic("orders")
    body = {"topics": ["orders"], "member_id": "one"}
    with ServedApp(built) as first:
        first.ask("POST", "/v1/groups/g/members", json=body)
        path = first.facade.store.paths.members
    path.write_bytes(path.read_bytes().replace(b'"one"', b"1"))
    with ServedApp(built) as second:
        assert second.ask("POST", "/v1/groups/g/members", json=body).status_code == 201
