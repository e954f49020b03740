from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from services.indexer.query.remoting.offset_commits import OffsetCommits, offset_to_commit
from services.indexer.query.remoting.pull_requests import PullRequests
from tests.built_store import BuiltStore, java_hash
from tests.unit.query.remoting.desk import Desk, FakeConnection, commits_of, consumer, groups_of, join
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import WAIT_S, ServedApp
from tests.waiting import until
from tidemark.access.guard import Caller
from tidemark.access.right import Right
from tidemark.errors import ForbiddenError
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.codes import ResponseCode
from tidemark.remoting.heartbeats import SubscriptionData
from tidemark.remoting.pulling import PULL_REQUEST, SQL92, PullFlag, PullMessageRequest
from tidemark.remoting_server.client_groups import ClientGroups

_OWN = int(PullFlag.SUBSCRIPTION)
_WAIT = _OWN | int(PullFlag.SUSPEND)


class World:
    """Pulls, the groups that they look at, and their commits."""

    def __init__(self, service: ServedApp) -> None:
        self.service = service
        self.groups: ClientGroups = groups_of(service)
        self.commits: OffsetCommits = commits_of(service, interval_s=1_000)
        self.desk = Desk(service, PullRequests(service.state, self.groups, self.commits, None).handlers())

    def pull(
        self,
        offset: int = 0,
        *,
        code: int = RequestCode.PULL_MESSAGE,
        connection: FakeConnection | None = None,
        **changed: Any,
    ) -> Frame:
        return self.desk.ask(code, self.asked(offset, **changed), connection=connection)

    @staticmethod
    def asked(offset: int, **changed: object) -> dict[str, object]:
        fields = {
            "consumerGroup": "g",
            "topic": "orders",
            "queueId": 0,
            "queueOffset": offset,
            "maxMsgNums": 32,
            "sysFlag": _OWN,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
        }
        return {**fields, **changed}

    def pull_and_meanwhile(self, act: Any, offset: int, **changed: object) -> Frame:
        """Return the answer to a pull that waits, with *act* called once it waits."""

        async def both() -> Frame | None:
            async with asyncio.timeout(WAIT_S):
                fields = self.asked(offset, **{"sysFlag": _WAIT, "suspendTimeoutMillis": 20_000, **changed})
                asked = asyncio.create_task(self.desk.start(RequestCode.PULL_MESSAGE, fields))
                while not self.service.state.watcher.waiting:
                    assert not asked.done(), asked.result()
                    await asyncio.sleep(0)
                act()
                return await asked

        answer = self.service.run(both())
        assert answer is not None
        return answer


@pytest.fixture
def world(service: ServedApp) -> World:
    return World(service)


def outcome(answer: Frame) -> tuple[int, ...]:
    """Return the code and the three offsets, which clients need in every answer."""
    assert answer.fields["suggestWhichBrokerId"] == "0"
    return answer.code, *(int(answer.fields[name]) for name in ("nextBeginOffset", "minOffset", "maxOffset"))


def records(built: BuiltStore, *queue_offsets: int) -> bytes:
    """Return the bytes of messages of queue 0 of `orders`, from the log."""
    log = (built.root / "commitlog" / f"{0:020d}").read_bytes()
    found, at = {}, 0
    while at < built.end:
        size = int.from_bytes(log[at : at + 4], "big")
        record = log[at : at + size]
        if b"orders" in record:
            found[int.from_bytes(record[20:28], "big")] = record
        at += size
    return b"".join(found[offset] for offset in queue_offsets)


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_a_page_is_the_records_as_stored(world: World, built: BuiltStore, code: int) -> None:
    answer = world.pull(1, code=code, maxMsgNums=3)
    assert outcome(answer) == (ResponseCode.SUCCESS, 4, 0, MESSAGES)
    assert (bytes(answer.body), answer.remark) == (records(built, 1, 2, 3), "FOUND")


def test_a_page_has_whole_records_up_to_the_limit_and_at_least_one(world: World, built: BuiltStore) -> None:
    two = len(records(built, 0, 1))
    for limit, count in ((two, 2), (two + 10, 2), (two - 1, 1), (1, 1)):
        answer = world.pull(0, maxMsgBytes=limit)
        assert bytes(answer.body) == records(built, *range(count))
        assert outcome(answer)[1] == count


def test_a_page_is_limited_by_half_of_the_largest_frame(tmp_path: Path) -> None:
    """A client must be able to read it, whatever the client asks for."""
    store = BuiltStore(tmp_path)
    store.topic("orders")
    for _ in range(4):
        store.append("orders", bytes(1_500))
    store.publish()
    with ServedApp(store, remoting_max_frame_bytes=8_192) as service:
        for limit in (2_147_483_647, 0, -1):
            assert len(World(service).pull(0, maxMsgBytes=limit).body) < 4_096


@pytest.mark.parametrize(
    ("queue_id", "offset", "expected"),
    [
        (0, MESSAGES, (ResponseCode.PULL_NOT_FOUND, MESSAGES, 0, MESSAGES)),
        (0, MESSAGES + 1, (ResponseCode.PULL_OFFSET_MOVED, MESSAGES, 0, MESSAGES)),
        (0, -1, (ResponseCode.PULL_OFFSET_MOVED, 0, 0, MESSAGES)),
        (1, 0, (ResponseCode.PULL_NOT_FOUND, 0, 0, 0)),
        (1, 3, (ResponseCode.PULL_OFFSET_MOVED, 0, 0, 0)),
    ],
)
def test_a_pull_outside_the_queue(world: World, queue_id: int, offset: int, expected: tuple[int, ...]) -> None:
    answer = world.pull(offset, queueId=queue_id)
    assert (outcome(answer), bytes(answer.body)) == (expected, b"")


def test_an_offset_after_an_empty_queue_is_moved_without_a_wait(built: BuiltStore) -> None:
    with ServedApp(built, query_max_wait_ms=600_000) as service:
        answer = World(service).pull(3, queueId=1, sysFlag=_WAIT, suspendTimeoutMillis=600_000)
    assert outcome(answer)[:2] == (ResponseCode.PULL_OFFSET_MOVED, 0)


@pytest.mark.parametrize("queue_id", [0, 1])
def test_an_offset_that_is_acknowledged_and_not_yet_visible_is_not_moved(
    world: World, built: BuiltStore, queue_id: int
) -> None:
    before = built.next.get(("orders", queue_id), 0)
    for _ in range(3):
        built.append("orders", b"hidden", queue_id=queue_id)
    built.commit()
    until(lambda: world.service.state.store.watermark().lag_bytes > 0)  # the checkpoint's file is new
    for offset in range(before, before + 4):
        answer = world.pull(offset, queueId=queue_id)
        assert outcome(answer) == (ResponseCode.PULL_NOT_FOUND, offset, 0, before)


def test_tags_are_compared_by_hash(world: World, built: BuiltStore) -> None:
    """A record with another tag of the same hash is returned: the client compares the text."""
    assert java_hash("Aa") == java_hash("BB")
    number = MESSAGES
    for tag in ("Aa", "BB", "C"):
        built.append("orders", tag.encode(), {"TAGS": tag})
    built.publish()
    answer = world.pull(number, subscription="Aa || X")
    assert bytes(answer.body) == records(built, number, number + 1)
    assert outcome(answer)[1] == number + 3


def test_a_page_without_a_match_makes_progress(world: World) -> None:
    answer = world.pull(1, subscription="nobody")
    assert outcome(answer) == (ResponseCode.PULL_RETRY_IMMEDIATELY, MESSAGES, 0, MESSAGES)


def test_an_inner_batch_is_returned_whole(world: World, built: BuiltStore) -> None:
    for offset in (0, 1, 2):
        answer = world.pull(offset, topic="batches", maxMsgNums=1, subscription="A")
        assert outcome(answer) == (ResponseCode.SUCCESS, 3, 0, 3)
        assert len(answer.body) == int.from_bytes(bytes(answer.body[:4]), "big")


def test_a_page_of_damaged_records_makes_progress_without_a_body(world: World, built: BuiltStore) -> None:
    """0 with an empty body would be no page for some clients."""
    for _ in range(2):
        written = built.append("orders", b"damaged")
        built.write_log(written.physical_offset + 8, bytes(4))  # another CRC
    built.publish()
    answer = world.pull(MESSAGES)
    assert outcome(answer)[:2] == (ResponseCode.PULL_RETRY_IMMEDIATELY, MESSAGES + 2)
    assert bytes(answer.body) == b""
    built.append("orders", b"whole")
    built.publish()
    assert bytes(world.pull(MESSAGES).body) == records(built, MESSAGES + 2)


# -- subscriptions --------------------------------------------------------------------------------------------------


def test_a_pull_without_a_subscription_uses_that_of_the_heartbeat(world: World, built: BuiltStore) -> None:
    join(world.service, world.groups, consumer("g", SubscriptionData("orders", "B", version=5)))
    answer = world.pull(0, sysFlag=0, subscription="", subVersion=5)
    assert bytes(answer.body) == records(built, 1, 3, 5)
    assert bytes(world.pull(0, sysFlag=0, subscription="*", subVersion=0).body) == records(built, 1, 3, 5)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"consumerGroup": "nobody"}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ({"topic": "batches"}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ({"subVersion": 6}, ResponseCode.SUBSCRIPTION_NOT_LATEST),
    ],
)
def test_a_pull_without_a_current_subscription_is_refused(world: World, asked: dict[str, Any], code: int) -> None:
    join(world.service, world.groups, consumer("g"))
    answer = world.pull(0, **{"sysFlag": 0, "subVersion": 5, **asked})
    assert answer.code == code
    assert answer.remark


@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize(
    ("expression", "kind", "code"),
    [
        ("|| ||", "TAG", ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("a > 1", SQL92, ResponseCode.SYSTEM_ERROR),
        ("a", "OTHER", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused(
    world: World, expression: str, kind: str, code: int, is_own: bool
) -> None:
    """It is in the request itself, or in the heartbeat."""
    if is_own:
        answer = world.pull(0, subscription=expression, expressionType=kind)
    else:
        join(world.service, world.groups, consumer("g", SubscriptionData("orders", expression, 5, kind)))
        answer = world.pull(0, sysFlag=0)
    assert answer.code == code
    assert ("SQL92" in answer.remark) == (kind != "TAG")


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"topic": "nothing"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": 2}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": -1}, ResponseCode.INVALID_PARAMETER),
        ({"queueOffset": "x"}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_pull_from_a_queue_that_does_not_exist_is_refused(world: World, asked: dict[str, Any], code: int) -> None:
    answer = world.pull(0, **asked)
    assert answer.code == code
    assert "nextBeginOffset" not in answer.fields


def test_a_topic_that_may_not_be_read_is_refused(world: World, built: BuiltStore) -> None:
    built.topics["orders"]["perm"] = 2
    built._save_topics()
    answer = world.pull(0)
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "permission 2" in answer.remark


# -- repeated requests ----------------------------------------------------------------------------------------------


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the topics of the requests whose fields are parsed, as they come."""
    topics: list[str] = []
    read = PULL_REQUEST.read

    def counted(fields: Mapping[str, str]) -> PullMessageRequest:
        topics.append(fields["topic"])
        return read(fields)

    monkeypatch.setattr(PULL_REQUEST, "read", counted)
    return topics


def test_a_repeated_pull_is_parsed_once(world: World, built: BuiltStore, parsed: list[str]) -> None:
    """Only the queue offset differs."""
    connection = FakeConnection()
    for offset in range(3):
        answer = world.pull(offset, maxMsgNums=1, connection=connection)
        assert bytes(answer.body) == records(built, offset)
    assert parsed == ["orders"]
    assert bytes(world.pull(0, maxMsgNums=2, connection=connection).body) == records(built, 0, 1)
    assert bytes(world.pull(0, maxMsgNums=1, subscription="B", connection=connection).body) == records(built, 1)
    assert bytes(world.pull(0, maxMsgNums=1).body) == records(built, 0), "of another connection"
    assert len(parsed) == 4


def test_a_repeated_pull_with_an_illegal_offset_is_refused(world: World) -> None:
    connection = FakeConnection()
    world.pull(1, connection=connection)
    for offset in ("x", "", "9223372036854775808"):
        answer = world.pull(0, queueOffset=offset, connection=connection)
        assert (answer.code, "queueOffset" in answer.remark) == (ResponseCode.SYSTEM_ERROR, True)
    assert outcome(world.pull(1, connection=connection))[0] == ResponseCode.SUCCESS


def test_a_repeated_pull_uses_the_newest_subscription_of_the_heartbeat(world: World, built: BuiltStore) -> None:
    connection = FakeConnection()
    for version, tag, first in ((1, "A", 0), (2, "B", 1)):
        join(world.service, world.groups, consumer("g", SubscriptionData("orders", tag, version)))
        answer = world.pull(0, sysFlag=0, maxMsgNums=1, subscription="", connection=connection)
        assert bytes(answer.body) == records(built, first)


def test_a_repeated_pull_is_refused_when_its_topic_may_not_be_read_any_more(world: World, built: BuiltStore) -> None:
    connection = FakeConnection()
    world.pull(0, connection=connection)
    built.topics["orders"]["perm"] = 2
    built._save_topics()
    assert world.pull(0, connection=connection).code == ResponseCode.NO_PERMISSION
    built.delete_topic("orders")
    assert world.pull(0, connection=connection).code == ResponseCode.TOPIC_NOT_EXIST


def test_each_repeated_pull_needs_the_right_to_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules may have changed, or the token may have expired."""
    connection = FakeConnection()
    world.pull(0, connection=connection)

    def refuse(_: Caller, right: Right) -> None:
        raise ForbiddenError(f"not allowed to {right}")

    monkeypatch.setattr(Caller, "require", refuse)
    answer = world.pull(0, connection=connection)
    assert (answer.code, "orders" in answer.remark) == (ResponseCode.NO_PERMISSION, True)


def test_each_repeated_pull_commits_its_offset(world: World) -> None:
    connection = FakeConnection()
    for offset in (1, 2):
        flags = _OWN | PullFlag.COMMIT_OFFSET
        world.pull(3, sysFlag=flags, commitOffset=offset, connection=connection)
        assert world.commits.get("g", "orders", 0) == offset
    world.commits.put(offset_to_commit("g", "orders", 0, 0))
    world.pull(4, sysFlag=flags, commitOffset=2, connection=connection)
    assert world.commits.get("g", "orders", 0) == 2


# -- commits --------------------------------------------------------------------------------------------------------


def test_a_pull_commits_the_offset_if_its_flag_says_so(world: World) -> None:
    world.pull(3, commitOffset=2)
    assert world.commits.get("g", "orders", 0) is None
    world.pull(3, sysFlag=_OWN | PullFlag.COMMIT_OFFSET, commitOffset=-1)  # the client has none yet
    assert world.commits.get("g", "orders", 0) is None
    world.pull(3, sysFlag=_OWN | PullFlag.COMMIT_OFFSET, commitOffset=2)
    assert world.commits.get("g", "orders", 0) == 2


def test_a_commit_of_a_pull_above_the_end_is_not_stored(world: World) -> None:
    answer = world.pull(3, sysFlag=_OWN | PullFlag.COMMIT_OFFSET, commitOffset=MESSAGES + 1)
    assert answer.code == ResponseCode.SUCCESS
    world.service.run(world.commits.close())
    assert world.service.state.offsets.get("g", "orders", 0) is None


def test_a_commit_of_an_illegal_group_is_refused(world: World) -> None:
    answer = world.pull(3, sysFlag=_OWN | PullFlag.COMMIT_OFFSET, commitOffset=2, consumerGroup="a@b")
    assert answer.code == ResponseCode.INVALID_PARAMETER


# -- waiting --------------------------------------------------------------------------------------------------------


def test_a_pull_that_may_wait_gets_the_next_matching_message(world: World, built: BuiltStore) -> None:
    def append() -> None:
        built.append("orders", b"other tag", {"TAGS": "A"})
        built.append("orders", b"other queue", {"TAGS": "B"}, queue_id=1)
        built.append("orders", b"this", {"TAGS": "B"})
        built.publish()

    answer = world.pull_and_meanwhile(append, MESSAGES, subscription="B")
    assert outcome(answer) == (ResponseCode.SUCCESS, MESSAGES + 2, 0, MESSAGES + 2)
    assert bytes(answer.body) == records(built, MESSAGES + 1)


def test_a_wait_without_a_message_ends_after_its_time(world: World) -> None:
    answer = world.pull(MESSAGES, sysFlag=_WAIT, suspendTimeoutMillis=30)
    assert outcome(answer)[:2] == (ResponseCode.PULL_NOT_FOUND, MESSAGES)


def test_a_wait_with_other_tags_ends_with_progress(world: World, built: BuiltStore) -> None:
    def append() -> None:
        built.append("orders", b"other tag", {"TAGS": "A"})
        built.publish()

    answer = world.pull_and_meanwhile(append, MESSAGES, subscription="B", suspendTimeoutMillis=300)
    assert outcome(answer) == (ResponseCode.PULL_RETRY_IMMEDIATELY, MESSAGES + 1, 0, MESSAGES + 1)


def test_a_pull_does_not_wait_without_the_flag(built: BuiltStore) -> None:
    with ServedApp(built, query_max_wait_ms=600_000) as service:
        answer = World(service).pull(MESSAGES, suspendTimeoutMillis=600_000)
    assert answer.code == ResponseCode.PULL_NOT_FOUND


def test_a_wait_is_limited_by_the_setting(built: BuiltStore) -> None:
    with ServedApp(built, query_max_wait_ms=20) as service:
        answer = World(service).pull(MESSAGES, sysFlag=_WAIT, suspendTimeoutMillis=1_000_000)
    assert answer.code == ResponseCode.PULL_NOT_FOUND


def test_a_wait_ends_when_its_topic_is_deleted(world: World, built: BuiltStore) -> None:
    answer = world.pull_and_meanwhile(lambda: built.delete_topic("orders"), MESSAGES)
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST
