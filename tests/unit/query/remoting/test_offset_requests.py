from __future__ import annotations

from pathlib import Path

import pytest

from services.indexer.query.remoting.offset_commits import OffsetCommits
from services.indexer.query.remoting.offset_requests import OffsetRequests
from tests.built_store import BuiltStore
from tests.unit.query.remoting.desk import Desk, commits_of
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import ServedApp
from tidemark.remoting import RequestCode
from tidemark.remoting.codes import ResponseCode

_QUEUE = {"topic": "orders", "queueId": 0}
_OF_GROUP = {"consumerGroup": "g", **_QUEUE}


@pytest.fixture
def commits(service: ServedApp) -> OffsetCommits:
    return commits_of(service, interval_s=1_000)


@pytest.fixture
def desk(service: ServedApp, commits: OffsetCommits) -> Desk:
    return Desk(service, OffsetRequests(service.state, commits).handlers())


def offset(desk: Desk, code: int, **more: object) -> int:
    answer = desk.ask(code, {**_QUEUE, **more})
    assert answer.code == ResponseCode.SUCCESS
    return int(answer.fields["offset"])


def store_with_times(folder: Path) -> BuiltStore:
    """Return topic `orders` whose queue 0 has messages of the times 1000, 2000 and 3000, and queue 1 none."""
    store = BuiltStore(folder)
    store.topic("orders", queues=2)
    for at_ms in (1_000, 2_000, 3_000):
        store.append("orders", at_ms=at_ms)
    store.publish()
    return store


# -- queues ---------------------------------------------------------------------------------------------------------


def test_the_bounds_of_a_queue_are_those_of_its_visible_messages(service: ServedApp, built: BuiltStore) -> None:
    desk = Desk(service, OffsetRequests(service.state, commits_of(service)).handlers())
    built.append("orders", b"not visible")
    assert (offset(desk, RequestCode.GET_MIN_OFFSET), offset(desk, RequestCode.GET_MAX_OFFSET)) == (0, MESSAGES)
    assert offset(desk, RequestCode.GET_MAX_OFFSET, topic="batches") == 3


@pytest.mark.parametrize("code", [RequestCode.GET_MIN_OFFSET, RequestCode.GET_MAX_OFFSET])
@pytest.mark.parametrize("queue", [{"topic": "nothing"}, {"queueId": 9}, {"queueId": 1}])
def test_a_queue_that_is_missing_or_empty_is_from_0_to_0(desk: Desk, code: int, queue: dict[str, object]) -> None:
    assert offset(desk, code, **queue) == 0


def test_a_queue_of_which_a_part_is_deleted_begins_later(tmp_path: Path) -> None:
    store = BuiltStore(tmp_path, log_file_size=4_096)
    store.topic("orders")
    while store.end < 3 * store.log_file_size:
        store.append("orders", bytes(900))
    store.publish()
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    with ServedApp(store) as service:
        desk = Desk(service, OffsetRequests(service.state, commits_of(service)).handlers())
        least = offset(desk, RequestCode.GET_MIN_OFFSET)
        assert 0 < least < offset(desk, RequestCode.GET_MAX_OFFSET) == store.next["orders", 0]
        unknown = desk.ask(RequestCode.QUERY_CONSUMER_OFFSET, _OF_GROUP)
        assert unknown.code == ResponseCode.QUERY_NOT_FOUND  # the client starts where its program says


@pytest.mark.parametrize(
    ("timestamp", "lower", "upper"),
    [(0, 0, 0), (1_000, 0, 0), (1_500, 1, 0), (2_000, 1, 1), (3_000, 2, 2), (3_001, 3, 2)],
)
def test_an_offset_is_found_by_time(tmp_path: Path, timestamp: int, lower: int, upper: int) -> None:
    with ServedApp(store_with_times(tmp_path)) as service:
        desk = Desk(service, OffsetRequests(service.state, commits_of(service)).handlers())
        search = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        assert offset(desk, search, timestamp=timestamp) == lower
        assert offset(desk, search, timestamp=timestamp, boundaryType="LOWER") == lower
        assert offset(desk, search, timestamp=timestamp, boundaryType="UPPER") == upper
        assert offset(desk, search, timestamp=timestamp, queueId=1) == 0
        assert offset(desk, search, timestamp=timestamp, topic="nothing") == 0


def test_the_earliest_store_time_is_that_of_the_first_message(tmp_path: Path) -> None:
    with ServedApp(store_with_times(tmp_path)) as service:
        desk = Desk(service, OffsetRequests(service.state, commits_of(service)).handlers())

        def earliest(**more: object) -> int:
            answer = desk.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, {**_QUEUE, **more})
            assert answer.code == ResponseCode.SUCCESS
            return int(answer.fields["timestamp"])

        assert [earliest(), earliest(queueId=1), earliest(queueId=9), earliest(topic="nothing")] == [1_000, -1, -1, -1]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"topic": "orders"}, "queueId"),
        ({"queueId": 0}, "topic"),
        ({**_QUEUE, "timestamp": "soon"}, "timestamp"),
        ({**_QUEUE, "timestamp": 1, "boundaryType": "MIDDLE"}, "boundaryType"),
    ],
)
def test_a_missing_or_illegal_field_is_named(desk: Desk, fields: dict[str, object], field: str) -> None:
    answer = desk.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert field in answer.remark


# -- groups ---------------------------------------------------------------------------------------------------------


def group_offset(desk: Desk, **more: object) -> tuple[int, int | None]:
    answer = desk.ask(RequestCode.QUERY_CONSUMER_OFFSET, {**_OF_GROUP, **more})
    return answer.code, int(answer.fields["offset"]) if "offset" in answer.fields else None


def commit(desk: Desk, offset: int, **more: object) -> int:
    return desk.ask(RequestCode.UPDATE_CONSUMER_OFFSET, {**_OF_GROUP, "commitOffset": offset, **more}).code


def test_a_group_without_an_offset_starts_at_0_in_a_queue_that_begins_at_0(desk: Desk) -> None:
    assert group_offset(desk) == group_offset(desk, queueId=1) == (ResponseCode.SUCCESS, 0)
    assert group_offset(desk, setZeroIfNotFound="true") == (ResponseCode.SUCCESS, 0)


@pytest.mark.parametrize("asked", [{"setZeroIfNotFound": "false"}, {"topic": "nothing"}, {"queueId": 9}])
def test_an_offset_that_is_not_known_is_not_found(desk: Desk, asked: dict[str, object]) -> None:
    assert group_offset(desk, **asked) == (ResponseCode.QUERY_NOT_FOUND, None)


def test_a_committed_offset_is_returned_and_stored(desk: Desk, service: ServedApp) -> None:
    assert commit(desk, 4) == ResponseCode.SUCCESS
    assert group_offset(desk, setZeroIfNotFound="false") == (ResponseCode.SUCCESS, 4)
    assert service.state.offsets.get("g", "orders", 0) == 4
    assert commit(desk, 1) == ResponseCode.SUCCESS  # back
    assert group_offset(desk) == (ResponseCode.SUCCESS, 1)


def test_an_offset_committed_one_way_is_known_before_it_is_stored(
    desk: Desk, service: ServedApp, commits: OffsetCommits
) -> None:
    desk.tell(RequestCode.UPDATE_CONSUMER_OFFSET, {**_OF_GROUP, "commitOffset": 4})
    assert group_offset(desk) == (ResponseCode.SUCCESS, 4)
    assert service.state.offsets.get("g", "orders", 0) is None
    service.run(commits.close())
    assert service.state.offsets.get("g", "orders", 0) == 4


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"commitOffset": MESSAGES + 1}, ResponseCode.INVALID_PARAMETER),
        ({"commitOffset": -1}, ResponseCode.INVALID_PARAMETER),
        ({"consumerGroup": "a@b"}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": 9}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": -1}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "nothing"}, ResponseCode.TOPIC_NOT_EXIST),
    ],
)
def test_an_illegal_commit_is_refused_and_nothing_is_stored(
    desk: Desk, service: ServedApp, changed: dict[str, object], code: int
) -> None:
    fields = {**_OF_GROUP, "commitOffset": 0, **changed}
    assert desk.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields).code == code
    assert list(service.state.offsets.all()) == []


def test_a_group_with_members_of_the_rest_api_has_its_commits_refused(desk: Desk, service: ServedApp) -> None:
    service.ask("POST", "/v1/groups/g/members", json={"topics": ["orders"]})
    answer = desk.ask(RequestCode.UPDATE_CONSUMER_OFFSET, {**_OF_GROUP, "commitOffset": 1})
    assert (answer.code, answer.fields["tidemarkReason"]) == (ResponseCode.SYSTEM_ERROR, "GROUP_ACTIVE")


def test_an_offset_of_a_deleted_topic_is_not_below_the_start_of_its_successor(
    desk: Desk, built: BuiltStore, service: ServedApp
) -> None:
    commit(desk, 2)
    built.delete_topic("orders")
    assert group_offset(desk) == (ResponseCode.QUERY_NOT_FOUND, None)
    built.topic("orders", queues=2)
    assert service.state.store.first_offset("orders", 0) == MESSAGES
    assert group_offset(desk) == (ResponseCode.SUCCESS, MESSAGES)


def test_an_unknown_group_of_a_recreated_topic_is_not_found(desk: Desk, built: BuiltStore) -> None:
    """0 would be outside the queue, and the client's answer to 21 takes half a minute."""
    built.delete_topic("orders")
    built.topic("orders", queues=2)
    assert group_offset(desk) == (ResponseCode.QUERY_NOT_FOUND, None)
    assert group_offset(desk, queueId=1) == (ResponseCode.SUCCESS, 0)
