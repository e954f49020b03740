from __future__ import annotations

from pathlib import Path

import pytest

from services.indexer.query.remoting.send_back_requests import SendBackRequests
from tests.access_files import AccessFolder
from tests.built_store import BuiltStore
from tests.unit.query.remoting.desk import Desk
from tests.unit.query.remoting.test_lookup_requests import record_places
from tests.unit.query.routes.fake_forward import FakeForward
from tests.unit.query.served_app import ServedApp
from tidemark.errors import StoreError, TopicForbiddenError, WriterUnreachableError
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.codes import ResponseCode


@pytest.fixture
def desk(service: ServedApp) -> Desk:
    return Desk(service, SendBackRequests(service.state).handlers())


@pytest.fixture
def forward(service: ServedApp) -> FakeForward:
    return FakeForward.put_into(service)


def send_back(desk: Desk, physical_offset: int, **more: object) -> Frame:
    fields = {"offset": physical_offset, "group": "g", "delayLevel": 0, "originTopic": "orders", **more}
    return desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, fields)


def test_a_message_is_passed_to_the_writer_by_its_place(desk: Desk, forward: FakeForward, built: BuiltStore) -> None:
    place = record_places(built)[2]
    answer = send_back(desk, place, delayLevel=4, maxReconsumeTimes=3)
    assert (answer.code, bytes(answer.body)) == (ResponseCode.SUCCESS, b"")
    (sent,) = forward.sent_back
    assert sent == ("orders", 0, 2, place, None)
    assert (forward.groups, forward.delay_levels, forward.limits_of_tries) == (["g"], [4], [3])


def test_a_request_without_a_limit_leaves_it_to_the_writer(desk: Desk, forward: FakeForward, built: BuiltStore) -> None:
    send_back(desk, record_places(built)[0], delayLevel=-1)
    assert (forward.delay_levels, forward.limits_of_tries) == ([-1], [None])


@pytest.fixture
def batch_place(built: BuiltStore) -> int:
    place = built.end
    messages = [(b"x%d" % number, {"UNIQ_KEY": f"x{number}"}, 0) for number in range(3)]
    built.append_batch("batches", messages)
    built.publish()
    return place


def test_one_message_of_an_inner_batch_is_named_by_its_unique_key(
    desk: Desk, forward: FakeForward, batch_place: int
) -> None:
    assert send_back(desk, batch_place, originMsgId="x1").code == ResponseCode.SUCCESS
    (sent,) = forward.sent_back
    assert (sent.topic, sent.queue_offset, sent.physical_offset, sent.inner_index) == ("batches", 4, batch_place, 1)


@pytest.mark.parametrize("named", [{}, {"originMsgId": "x9"}])
def test_an_inner_batch_of_which_no_message_is_named_is_refused(
    desk: Desk, forward: FakeForward, batch_place: int, named: dict[str, object]
) -> None:
    """The client then sends the message to the retry topic itself."""
    answer = send_back(desk, batch_place, **named)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "originMsgId" in answer.remark
    assert forward.sent_back == []


def test_the_only_message_of_an_inner_batch_needs_no_name(desk: Desk, forward: FakeForward, built: BuiltStore) -> None:
    place = built.end
    built.append_batch("batches", [(b"alone", {}, 0)])
    built.publish()
    assert send_back(desk, place).code == ResponseCode.SUCCESS
    assert forward.sent_back[0].inner_index == 0


@pytest.mark.parametrize("place", [1, 1 << 40, -1])
def test_a_place_without_a_message_is_refused(desk: Desk, forward: FakeForward, place: int) -> None:
    assert send_back(desk, place).code == ResponseCode.SYSTEM_ERROR
    assert forward.sent_back == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (WriterUnreachableError("no answer"), ResponseCode.SERVICE_NOT_AVAILABLE),
        (TopicForbiddenError("read only"), ResponseCode.NO_PERMISSION),
    ],
)
def test_a_refusal_of_the_writer_is_the_answer(
    desk: Desk, forward: FakeForward, built: BuiltStore, failure: StoreError, code: int
) -> None:
    forward.failure = failure
    answer = send_back(desk, record_places(built)[0])
    assert (answer.code, answer.remark) == (code, failure.message)


def test_the_callers_token_is_passed_to_the_writer(desk: Desk, forward: FakeForward, built: BuiltStore) -> None:
    place = record_places(built)[0]
    send_back(desk, place, SecurityToken="secret")
    send_back(desk, place)
    assert forward.authorizations == ["Bearer secret", None]


@pytest.mark.parametrize(
    ("resources", "may"), [(["Topic:orders", "Group:g"], True), (["Topic:orders"], False), (["Group:g"], False)]
)
def test_rights_to_the_topic_and_to_the_group_are_needed(
    tmp_path: Path, built: BuiltStore, resources: list[str], may: bool
) -> None:
    (tmp_path / "access").mkdir()
    files = AccessFolder(tmp_path / "access")
    token = files.principal("reader")
    files.rule("reader", ["Sub"], *resources)
    from services.indexer.query.config import QuerySettings

    guard = QuerySettings(store_root=built.root, access_file=files.path).open_guard("query")
    with ServedApp(built, guard=guard) as service:
        forward = FakeForward.put_into(service)
        desk = Desk(service, SendBackRequests(service.state).handlers(), token)
        answer = send_back(desk, record_places(built)[0])
        assert answer.code == (ResponseCode.SUCCESS if may else ResponseCode.NO_PERMISSION)
        assert len(forward.sent_back) == may
