"""Pulls of RocketMQ's consumers over real connections, answered from a store that the test writes."""

from __future__ import annotations

import struct
import time

import pytest

from tests.built_store import BuiltStore, java_hash
from tests.query_server import ServedRemoting, serve_query_remoting
from tests.remoting_client import RemotingClient
from tests.waiting import until
from tidemark.remoting import RequestCode, Serialization
from tidemark.remoting.codes import Language
from tidemark.store.originals.topics import PERMISSION_WRITE

from .calls import OWN, SUSPEND, heartbeat, hold, outcome, pull, pull_fields, stored

pytestmark = pytest.mark.integration
COUNT = 10  # messages in queue 0 of `orders`
HELD = 400
PAGES, PAGE_BYTES, PULLS = 20, 60_000, 600  # 36 MB: more than the kernel's buffers take


# -- pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
@pytest.mark.parametrize("serialization", list(Serialization))
def test_every_message_is_pulled_as_stored(
    built: BuiltStore, client: RemotingClient, code: int, serialization: Serialization
) -> None:
    """The answer's header is in JSON, whatever the request's is in."""
    offset, pages = 0, []
    while True:
        opaque = client.send(code, pull_fields(offset, maxMsgNums=3), serialization=serialization, language=Language.GO)
        answer = client.receive()
        assert (answer.opaque, answer.serialization) == (opaque, Serialization.JSON)
        if answer.code != 0:
            break
        pages.append(bytes(answer.body))
        offset = outcome(answer)[1]
    assert outcome(answer) == (19, COUNT, 0, COUNT)
    records = stored(built.root, "orders")
    assert pages == [b"".join(records[i] for i in page) for page in ((0, 1, 2), (3, 4, 5), (6, 7, 8), (9,))]


def test_a_page_is_cut_by_bytes_between_records_and_has_at_least_one(built: BuiltStore, client: RemotingClient) -> None:
    built.append("orders", bytes(20_000))
    built.publish()
    records = stored(built.root, "orders")
    three = len(records[0]) * 3
    for limit, count in ((three, 3), (three - 1, 2), (1, 1)):
        answer = pull(client, 0, maxMsgBytes=limit)
        assert bytes(answer.body) == b"".join(records[i] for i in range(count))
    large = pull(client, COUNT, maxMsgBytes=100)
    assert (bytes(large.body), outcome(large)[1]) == (records[COUNT], COUNT + 1)


def test_a_queue_of_many_files_is_read_to_its_end(built: BuiltStore, client: RemotingClient) -> None:
    for number in range(300):
        built.append("orders", bytes(700), {"TAGS": str(number)}, queue_id=1)
    built.publish()
    offset, body = 0, b""
    while (answer := pull(client, offset, queueId=1)).code == 0:
        offset = outcome(answer)[1]
        body += bytes(answer.body)
    records = stored(built.root, "orders", 1)
    assert (offset, len(records)) == (300, 300)
    assert body == b"".join(records[number] for number in range(300))


def test_an_inner_batch_is_returned_whole_from_any_of_its_offsets(built: BuiltStore, client: RemotingClient) -> None:
    (record,) = stored(built.root, "batches").values()
    for offset in range(3):
        answer = pull(client, offset, topic="batches", maxMsgNums=1, subscription="B")
        assert (outcome(answer), bytes(answer.body)) == ((0, 3, 0, 3), record)


# -- tags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "offsets"),
    [("*", range(COUNT)), ("", range(COUNT)), ("A", range(0, COUNT, 2)), (" B || C", range(1, COUNT, 2))],
)
def test_a_subscription_selects_by_tag(
    built: BuiltStore, client: RemotingClient, expression: str, offsets: range
) -> None:
    records = stored(built.root, "orders")
    expected = b"".join(records[offset] for offset in offsets)
    assert bytes(pull(client, 0, subscription=expression).body) == expected
    assert heartbeat(client, "c1", orders=expression).code == 0
    by_heartbeat = pull(client, 0, sysFlag=0, subscription="", subVersion=1)
    assert bytes(by_heartbeat.body) == expected


def test_records_with_another_tag_of_the_same_hash_are_returned(built: BuiltStore, client: RemotingClient) -> None:
    """Consumers compare the text again, as with a broker."""
    assert java_hash("Aa") == java_hash("BB") != java_hash("C")
    for tag in ("Aa", "C", "BB"):
        built.append("orders", b"collides", {"TAGS": tag})
    built.publish()
    answer = pull(client, COUNT, subscription="BB")
    records = stored(built.root, "orders")
    assert bytes(answer.body) == records[COUNT] + records[COUNT + 2]


def test_a_page_without_a_match_is_20_with_progress(client: RemotingClient) -> None:
    assert outcome(pull(client, 2, subscription="nobody")) == (20, COUNT, 0, COUNT)


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "code", "remark"),
    [
        ({"topic": "nothing"}, 17, "nothing"),
        ({"queueId": 2}, 29, "queue 2"),
        ({"queueId": -1}, 29, "queue -1"),
        ({"subscription": "|| ||"}, 23, "||"),
        ({"subscription": "a > 1", "expressionType": "SQL92"}, 1, "SQL92"),
        ({"sysFlag": 0, "consumerGroup": "nobody"}, 24, "nobody"),
        ({"maxMsgNums": "many"}, 1, "maxMsgNums"),
    ],
)
def test_a_pull_that_cannot_be_answered_is_refused(
    client: RemotingClient, asked: dict[str, object], code: int, remark: str
) -> None:
    answer = pull(client, 0, **asked)
    assert answer.code == code
    assert remark in answer.remark
    assert pull(client, 0).code == 0  # the connection is still good


def test_a_pull_is_refused_while_the_heartbeat_has_no_current_subscription(client: RemotingClient) -> None:
    heartbeat(client, "c1")
    assert pull(client, 0, sysFlag=0, topic="batches").code == 24
    assert pull(client, 0, sysFlag=0, subVersion=2).code == 25
    assert pull(client, 0, sysFlag=0, subVersion=1).code == 0


def test_a_topic_without_read_permission_is_refused(built: BuiltStore, client: RemotingClient) -> None:
    built.topics["orders"]["perm"] = PERMISSION_WRITE
    built._save_topics()
    until(lambda: pull(client, 0).code == 16)


# -- positions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue_id", "offset", "expected"),
    [
        (0, COUNT, (19, COUNT, 0, COUNT)),
        (0, COUNT + 1, (21, COUNT, 0, COUNT)),
        (0, -1, (21, 0, 0, COUNT)),
        (1, 0, (19, 0, 0, 0)),
        (1, 1, (21, 0, 0, 0)),
    ],
)
def test_positions_outside_the_queue(
    client: RemotingClient, queue_id: int, offset: int, expected: tuple[int, ...]
) -> None:
    answer = pull(client, offset, queueId=queue_id)
    assert (outcome(answer), bytes(answer.body)) == (expected, b"")


def test_a_position_that_retention_has_deleted_moves_to_the_first_message(built: BuiltStore) -> None:
    while built.end < built.log_file_size:
        built.append("orders", bytes(9_000))
    end = built.next["orders", 0]
    built.append("orders", b"last")
    built.publish()
    (built.root / "commitlog" / f"{0:020d}").unlink()
    with serve_query_remoting(built.root) as served, served.connect() as client:
        code, following, least, _ = outcome(pull(client, 0))
        assert code == 21
        assert following == least <= end
        assert pull(client, following).code == 0


def test_an_acknowledged_offset_that_is_not_visible_yet_is_waited_for(
    built: BuiltStore, served: ServedRemoting, client: RemotingClient
) -> None:
    """21 would cost its consumer half a minute."""
    built.commit()
    until(lambda: served.state.store.watermark().committed_offset == built.end)
    for queue_id in (0, 1):
        for _ in range(2):
            built.append("orders", b"hidden", queue_id=queue_id)
    built.commit()
    until(lambda: served.state.store.watermark().lag_bytes > 0)
    for queue_id, end in ((0, COUNT), (1, 0)):
        for offset in range(end, end + 3):
            assert outcome(pull(client, offset, queueId=queue_id)) == (19, offset, 0, end)
    hold(client, 1, queueId=1)
    until(lambda: served.state.watcher.waiting == 1)
    built.publish()
    answer = client.receive()
    assert (outcome(answer), bytes(answer.body)) == ((0, 2, 0, 2), stored(built.root, "orders", 1)[1])


# -- long polls -----------------------------------------------------------------------------------------------------


def test_a_held_pull_is_answered_when_a_matching_message_becomes_visible(
    built: BuiltStore, served: ServedRemoting, client: RemotingClient
) -> None:
    """Other queues, other tags and messages that are not visible do not answer it."""
    opaque = hold(client, COUNT, subscription="B")
    until(lambda: served.state.watcher.waiting == 1)
    built.append("orders", b"other queue", {"TAGS": "B"}, queue_id=1)
    built.append("orders", b"other tag", {"TAGS": "A"})
    built.publish()
    built.append("orders", b"this", {"TAGS": "B"})
    asked = client.send(RequestCode.GET_MAX_OFFSET, {"topic": "orders", "queueId": "0"})
    answer = client.receive()  # requests between are answered meanwhile
    assert (answer.opaque, answer.fields["offset"]) == (asked, str(COUNT + 1))
    assert served.state.watcher.waiting == 1
    built.publish()
    answer = client.receive()
    assert (answer.opaque, outcome(answer)) == (opaque, (0, COUNT + 2, 0, COUNT + 2))
    assert bytes(answer.body) == stored(built.root, "orders")[COUNT + 1]


def test_a_held_pull_uses_the_subscription_of_the_heartbeat(
    built: BuiltStore, served: ServedRemoting, client: RemotingClient
) -> None:
    heartbeat(client, "c1", orders="B")
    hold(client, COUNT, sysFlag=SUSPEND, subscription="", subVersion=1)
    until(lambda: served.state.watcher.waiting == 1)
    for tag in ("A", "B"):
        built.append("orders", tag.encode(), {"TAGS": tag})
    built.publish()
    assert bytes(client.receive().body) == stored(built.root, "orders")[COUNT + 1]


def test_a_held_pull_ends_after_its_time(built: BuiltStore, served: ServedRemoting, client: RemotingClient) -> None:
    """It is 19 if nothing came, and 20 with progress if only other tags came."""
    hold(client, COUNT, wait_ms=100)
    assert outcome(client.receive()) == (19, COUNT, 0, COUNT)
    hold(client, COUNT, wait_ms=1_500, subscription="B")
    until(lambda: served.state.watcher.waiting == 1)
    built.append("orders", b"other tag", {"TAGS": "A"})
    built.publish()
    assert outcome(client.receive()) == (20, COUNT + 1, 0, COUNT + 1)


def test_hundreds_of_pulls_are_held_on_one_connection(
    built: BuiltStore, served: ServedRemoting, client: RemotingClient
) -> None:
    """Java sends the pulls of all its queues at once."""
    built.topic("wide", queues=HELD)
    built.publish()
    until(lambda: pull(client, 0, topic="wide").code == 19)
    opaque = {hold(client, 0, topic="wide", queueId=queue_id): queue_id for queue_id in range(HELD)}
    until(lambda: served.state.watcher.waiting == HELD)
    assert pull(client, 0).code == 0
    for queue_id in range(0, HELD, 2):
        built.append("wide", b"to %d" % queue_id, queue_id=queue_id)
    built.publish()
    answers = {opaque.pop(answer.opaque): answer for answer in (client.receive() for _ in range(HELD // 2))}
    assert sorted(answers) == list(range(0, HELD, 2))
    for queue_id, answer in answers.items():
        assert bytes(answer.body) == stored_at(built, answer.body)
        assert b"to %d" % queue_id in bytes(answer.body)
    assert served.state.watcher.waiting == HELD // 2


def stored_at(built: BuiltStore, record: bytes | bytearray | memoryview) -> bytes:
    """Return the bytes of the log at the record's own place."""
    (place,) = struct.unpack_from(">q", bytes(record), 28)
    start = place - place % built.log_file_size
    data = (built.root / "commitlog" / f"{start:020d}").read_bytes()
    return data[place - start : place - start + len(record)]


def test_held_pulls_are_forgotten_when_their_connection_closes(served: ServedRemoting, client: RemotingClient) -> None:
    with served.connect() as other:
        for _ in range(20):
            hold(other, COUNT)
        hold(client, COUNT)
        until(lambda: served.state.watcher.waiting == 21)
    until(lambda: served.state.watcher.waiting == 1)
    assert served.http.get("/v1/status").json()["query"]["waiting_requests"] == 1


def test_pulls_beyond_the_limit_of_waiting_requests_are_busy(built: BuiltStore) -> None:
    with serve_query_remoting(built.root, query_max_waiting=2) as served, served.connect() as client:
        for _ in range(2):
            hold(client, COUNT)
        until(lambda: served.state.watcher.waiting == 2)
        hold(client, COUNT)
        answer = client.receive()
        assert (answer.code, answer.fields["tidemarkReason"]) == (2, "IN_FLIGHT_LIMIT")


def test_a_client_that_does_not_take_its_answers_gets_no_further_pages_made(built: BuiltStore) -> None:
    """Otherwise its pulls, which may be a thousand, would fill the memory. Later it gets each of them."""
    for _ in range(PAGES):
        built.append("orders", bytes(PAGE_BYTES), queue_id=1)
    built.publish()
    with serve_query_remoting(built.root, remoting_max_unsent_bytes=PAGE_BYTES) as served, served.connect() as client:
        for number in range(PULLS):
            fields = pull_fields(number % PAGES, queueId=1, maxMsgNums=1)
            client.send(RequestCode.PULL_MESSAGE, fields)
        with served.connect() as other:
            until(lambda: pull(other, 0).code == 0)
        made = pages_made(served)
        assert made < PULLS / 2
        answers = [client.receive() for _ in range(PULLS)]
        assert {answer.code for answer in answers} == {0}
        assert sorted(answer.opaque for answer in answers) == list(range(1, PULLS + 1))


def pages_made(served: ServedRemoting) -> int:
    """Wait until no further page is made; return the number of pages with one message."""
    before = -1.0
    while True:
        text = served.http.get("/metrics").text
        (line,) = (line for line in text.splitlines() if line.startswith('rocketmq_messages_out_total{topic="orders"}'))
        if (found := float(line.split()[1])) == before:
            return int(found) - COUNT  # of the pull of all of queue 0
        before = found
        time.sleep(0.3)


# -- deleted topics -------------------------------------------------------------------------------------------------


def test_a_deleted_topic_is_unknown_at_once_also_to_held_pulls(
    built: BuiltStore, served: ServedRemoting, client: RemotingClient
) -> None:
    hold(client, COUNT)
    until(lambda: served.state.watcher.waiting == 1)
    built.delete_topic("orders")
    assert client.receive().code == 17
    assert pull(client, 0).code == 17


def test_a_recreated_topic_begins_after_its_old_messages(
    built: BuiltStore, served: ServedRemoting, client: RemotingClient
) -> None:
    built.delete_topic("orders")
    built.topic("orders", queues=2)
    until(lambda: pull(client, 0).code != 17)
    assert outcome(pull(client, COUNT - 1)) == (21, COUNT, COUNT, COUNT)
    assert outcome(pull(client, COUNT)) == (19, COUNT, COUNT, COUNT)
    hold(client, COUNT)
    until(lambda: served.state.watcher.waiting == 1)
    built.append("orders", b"new")
    built.publish()
    answer = client.receive()
    assert outcome(answer) == (0, COUNT + 1, COUNT, COUNT + 1)
    assert bytes(answer.body) == stored(built.root, "orders")[COUNT]


def test_a_pull_with_its_own_subscription_needs_no_heartbeat(client: RemotingClient) -> None:
    assert pull(client, 0, sysFlag=OWN, consumerGroup="never-heard").code == 0
