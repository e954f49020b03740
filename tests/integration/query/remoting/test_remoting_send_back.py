"""Messages that consumers give back over the remoting protocol (36), stored by a real writer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import make_plan
from tests.access_files import AccessFolder
from tests.builders import properties, wire_batch
from tests.integration.writer.harness import RunningWriter, stored_records
from tests.pipeline_runs import build
from tests.query_server import serve_query_remoting
from tests.remoting_client import RemotingClient
from tidemark.format.message_id import encode_offset_message_id
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record
from tidemark.remoting import Frame, RequestCode
from tidemark.v1 import topics_pb2

from .calls import pull

pytestmark = pytest.mark.integration

RETRY, DEAD, SCHEDULE = "%RETRY%g", "%DLQ%g", "SCHEDULE_TOPIC_XXXX"
MESSAGES = [(b"m%d" % i, properties({"TAGS": "a", "UNIQ_KEY": f"u{i}"}), 0) for i in range(3)]
FIRST_LEVEL = 3  # of a message without tries


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunningWriter]:
    with RunningWriter(tmp_path / "store") as writer:
        yield writer


@pytest.fixture
def client(writer: RunningWriter) -> Iterator[RemotingClient]:
    with (
        serve_query_remoting(writer.root, writer_address=writer.address, query_recheck_ms=20) as served,
        served.connect() as client,
    ):
        yield client


def fill(writer: RunningWriter, *messages: tuple[bytes, bytes, int], topic: str = "t", **fields: Any) -> list[int]:
    """Append messages and make them visible; return their physical offsets."""
    places = [writer.append(topic, wire_batch(message), **fields).physical_offset for message in messages]
    index(writer.root)
    return places


def index(root: Path) -> None:
    build(make_plan(PipelineSettings(store_root=root, once=True, index_slots=10)))


def in_topic(root: Path, topic: str) -> list[Record]:
    return [record for record in stored_records(root) if record.topic == topic.encode()]


def send_back(client: RemotingClient, place: int, **changed: object) -> Frame:
    fields = {"offset": place, "group": "g", "delayLevel": 0, "originTopic": "t", "unitMode": "false", **changed}
    return client.call(RequestCode.CONSUMER_SEND_MSG_BACK, {name: str(value) for name, value in fields.items()})


@pytest.mark.parametrize(("asked", "level"), [(0, FIRST_LEVEL), (1, 1), (18, 18)])
def test_a_message_is_stored_for_another_try_with_the_requested_delay(
    writer: RunningWriter, client: RemotingClient, asked: int, level: int
) -> None:
    places = fill(writer, *MESSAGES)
    answer = send_back(client, places[1], delayLevel=asked, originMsgId="u1", maxReconsumeTimes=16)
    assert (answer.code, bytes(answer.body)) == (0, b"")
    (copy,) = in_topic(writer.root, SCHEDULE)
    named = decode_properties(copy.properties)
    assert (copy.body, copy.queue_id, copy.reconsume_times) == (b"m1", level - 1, 1)
    assert (named["REAL_TOPIC"], named["RETRY_TOPIC"], named["TAGS"]) == (RETRY, "t", "a")
    assert named["ORIGIN_MESSAGE_ID"] == encode_offset_message_id(copy.store_host, places[1])
    assert named["UNIQ_KEY"] == "u1"


@pytest.mark.parametrize(
    ("tried", "asked"),
    [(2, {"maxReconsumeTimes": 2}), (0, {"delayLevel": -1}), (0, {"maxReconsumeTimes": 0}), (16, {})],
)
def test_a_message_without_tries_left_is_a_dead_letter(
    writer: RunningWriter, client: RemotingClient, tried: int, asked: dict[str, object]
) -> None:
    (place,) = fill(writer, MESSAGES[0], reconsume_times=tried)
    assert send_back(client, place, **asked).code == 0
    (dead,) = in_topic(writer.root, DEAD)
    assert (dead.body, dead.reconsume_times) == (b"m0", tried + 1)
    assert in_topic(writer.root, SCHEDULE) == []


def test_a_message_that_was_retried_is_sent_back_from_its_retry_topic(
    writer: RunningWriter, client: RemotingClient
) -> None:
    named = properties({"UNIQ_KEY": "r", "RETRY_TOPIC": "t", "ORIGIN_MESSAGE_ID": "u0"})
    (place,) = fill(writer, (b"again", named, 0), topic=RETRY, reconsume_times=1)
    assert send_back(client, place, maxReconsumeTimes=16).code == 0
    (copy,) = in_topic(writer.root, SCHEDULE)
    assert (copy.queue_id, copy.reconsume_times) == (FIRST_LEVEL, 2)  # level 4
    assert decode_properties(copy.properties)["RETRY_TOPIC"] == "t"
    assert decode_properties(copy.properties)["ORIGIN_MESSAGE_ID"] == "u0"


def test_a_repeated_request_stores_one_copy(writer: RunningWriter, client: RemotingClient) -> None:
    """A client repeats it after a timeout."""
    places = fill(writer, *MESSAGES)
    for _ in range(2):
        assert send_back(client, places[0], delayLevel=-1).code == 0
    assert send_back(client, places[2], delayLevel=-1).code == 0
    assert send_back(client, places[0], delayLevel=-1, group="h").code == 0
    assert [record.body for record in in_topic(writer.root, DEAD)] == [b"m0", b"m2"]
    assert [record.body for record in in_topic(writer.root, "%DLQ%h")] == [b"m0"]


def test_one_message_of_an_inner_batch_is_sent_back_by_its_unique_key(
    writer: RunningWriter, client: RemotingClient
) -> None:
    writer.topics.CreateTopic(
        topics_pb2.CreateTopicRequest(name="t", queue_count=1, attributes={"queue.type": "BatchCQ"}), timeout=30
    )
    place = writer.append("t", wire_batch(*MESSAGES)).physical_offset
    index(writer.root)
    assert pull(client, 0, topic="t").code == 0
    for named, code in (({"originMsgId": "u9"}, 29), ({}, 29), ({"originMsgId": "u2"}, 0)):
        assert send_back(client, place, delayLevel=-1, **named).code == code
    (dead,) = in_topic(writer.root, DEAD)
    assert dead.body == b"m2"
    named = decode_properties(dead.properties)
    assert named["ORIGIN_MESSAGE_ID"] == encode_offset_message_id(dead.store_host, place)
    assert named["UNIQ_KEY"] == "u2"


def test_a_place_without_a_message_is_refused(writer: RunningWriter, client: RemotingClient) -> None:
    (place,) = fill(writer, MESSAGES[0])
    hidden = writer.append("t", wire_batch(MESSAGES[1])).physical_offset
    for wrong in (place + 1, hidden, 1 << 50, -1):
        assert send_back(client, wrong).code == 1, wrong
    assert in_topic(writer.root, SCHEDULE) == in_topic(writer.root, DEAD) == []


@pytest.mark.parametrize(("changed", "code"), [({"group": "no+group"}, 29), ({"delayLevel": 19}, 29)])
def test_an_illegal_request_is_refused_by_the_writer(
    writer: RunningWriter, client: RemotingClient, changed: dict[str, object], code: int
) -> None:
    (place,) = fill(writer, MESSAGES[0])
    assert send_back(client, place, **changed).code == code


@pytest.mark.parametrize("is_configured", [True, False])
def test_a_message_cannot_be_sent_back_without_a_writer(tmp_path: Path, is_configured: bool) -> None:
    """The client then tries the message again itself; pulls are still answered."""
    with RunningWriter(tmp_path / "store") as writer:
        (place,) = fill(writer, MESSAGES[0])
        address = writer.address if is_configured else None
    with serve_query_remoting(writer.root, writer_address=address) as served, served.connect() as client:
        answer = send_back(client, place)
        assert (answer.code, answer.fields["tidemarkReason"]) == (14, "WRITER_UNREACHABLE")
        assert pull(client, 0, topic="t").code == 0


def test_the_writer_checks_the_callers_own_token(tmp_path: Path) -> None:
    (tmp_path / "access").mkdir()
    files = AccessFolder(tmp_path / "access")
    tokens = {name: files.principal(name) for name in ("member", "reader", "stranger")}
    for name in ("member", "reader"):
        files.rule(name, ["Sub"], "Topic:t", "Group:g")
    files.rule("member", ["Pub"], "Topic:t")
    settings: dict[str, Any] = {"access_file": files.path}
    root = tmp_path / "store"
    with RunningWriter(root) as writer:
        (place,) = fill(writer, MESSAGES[0])
    with (
        RunningWriter(root, **settings) as writer,
        serve_query_remoting(root, writer_address=writer.address, **settings) as served,
    ):
        codes = {}
        for name, token in tokens.items():
            with served.connect(fields={"SecurityToken": token}) as client:
                codes[name] = send_back(client, place, delayLevel=-1).code
    assert codes == {"member": 0, "reader": 0, "stranger": 16}
    assert [record.body for record in in_topic(root, DEAD)] == [b"m0"]


def test_a_message_id_of_a_sent_message_is_its_place(writer: RunningWriter, client: RemotingClient) -> None:
    """A program can look up a message by the id that its producer got."""
    (place,) = fill(writer, MESSAGES[0])
    (record,) = in_topic(writer.root, "t")
    message_id = encode_offset_message_id(record.store_host, place)
    answer = client.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(int(message_id[-16:], 16))})
    assert (answer.code, b"m0" in bytes(answer.body)) == (0, True)
