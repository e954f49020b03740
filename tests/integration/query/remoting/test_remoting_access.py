"""Who may do what over the remoting protocol at the query service, TLS, and limits of connections."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.access_files import AccessFolder
from tests.built_store import BuiltStore
from tests.certificates import Authority
from tests.query_server import ServedRemoting, serve_query_remoting
from tests.remoting_client import RemotingClient
from tests.waiting import until
from tidemark.client import Credentials
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.groups import BrokerQueue, QueueLock, queue_lock_body

from .calls import COMMIT, OWN, commit_fields, group_offset, heartbeat, lock, members, pull

pytestmark = pytest.mark.integration
FOR_EVER_MS = (1 << 63) - 1
UNAUTHENTICATED, FORBIDDEN = (16, "UNAUTHENTICATED"), (16, "FORBIDDEN")


@pytest.fixture
def files(tmp_path: Path) -> AccessFolder:
    (tmp_path / "access").mkdir()
    return AccessFolder(tmp_path / "access")


@pytest.fixture
def served(tmp_path: Path, built: BuiltStore, files: AccessFolder) -> Iterator[ServedRemoting]:
    settings: dict[str, Any] = {
        "access_file": files.path,
        "access_reload_ms": 10,
        "audit_file": tmp_path / "audit.log",
        "index_slots": built.slots,
        "index_entries": built.entries,
        "remoting_offset_interval_ms": 20,
    }
    with serve_query_remoting(built.root, **settings) as served:
        yield served


def requests() -> dict[int, tuple[dict[str, str], bytes]]:
    """Return a legal request of each kind about topic `orders` and group g."""
    queue = {"topic": "orders", "queueId": "0"}
    group = {"consumerGroup": "g"}
    key = {"key": "k1", "maxNum": "1", "beginTimestamp": "0", "endTimestamp": str(FOR_EVER_MS)}
    back = {"offset": "0", "group": "g", "delayLevel": "0"}
    locks = queue_lock_body(QueueLock("c1", "g", (BrokerQueue("x", 0, "orders"),)))
    return {
        RequestCode.PULL_MESSAGE: ({**group, **queue, "queueOffset": "0", "maxMsgNums": "1", "sysFlag": "4"}, b""),
        RequestCode.QUERY_MESSAGE: ({**queue, **key}, b""),
        RequestCode.VIEW_MESSAGE_BY_ID: ({"offset": "0"}, b""),
        RequestCode.GET_MIN_OFFSET: (queue, b""),
        RequestCode.GET_MAX_OFFSET: (queue, b""),
        RequestCode.GET_EARLIEST_MSG_STORETIME: (queue, b""),
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: ({**queue, "timestamp": "1"}, b""),
        RequestCode.GET_ROUTEINFO_BY_TOPIC: ({"topic": "orders"}, b""),
        RequestCode.QUERY_CONSUMER_OFFSET: ({**group, **queue}, b""),
        RequestCode.UPDATE_CONSUMER_OFFSET: (commit_fields(1), b""),
        RequestCode.UNREGISTER_CLIENT: ({**group, "clientID": "c1"}, b""),
        RequestCode.GET_CONSUMER_LIST_BY_GROUP: (group, b""),
        RequestCode.LOCK_BATCH_MQ: ({}, locks),
        RequestCode.UNLOCK_BATCH_MQ: ({}, locks),
        RequestCode.CONSUMER_SEND_MSG_BACK: (back, b""),
    }


OF_TOPIC = {*list(requests())[:8], RequestCode.CONSUMER_SEND_MSG_BACK}
OF_GROUP = {*list(requests())[8:]}


def told(answer: Frame) -> tuple[int, str]:
    return answer.code, answer.fields.get("tidemarkReason", "")


def refused(client: RemotingClient) -> set[int]:
    """Return the kinds of requests that the caller may not send."""
    return {code for code, (fields, body) in requests().items() if client.call(code, fields, body).code == 16}


# -- rights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{}, {"SecurityToken": "x"}, {"AccessKey": "a", "Signature": "s"}])
def test_a_caller_without_a_token_is_refused_everything(served: ServedRemoting, fields: dict[str, str]) -> None:
    """This covers also requests that are not offered."""
    with served.connect(fields=fields) as client:
        for code in (*RequestCode, 999):
            asked, body = requests().get(code, ({}, b""))
            assert told(client.call(code, asked, body)) == UNAUTHENTICATED, code
        assert told(heartbeat(client, "c1")) == UNAUTHENTICATED


def test_rights_to_topics_and_groups_are_checked_separately(served: ServedRemoting, files: AccessFolder) -> None:
    tokens = {name: files.principal(name) for name in ("nobody", "topics", "groups", "both", "others")}
    files.rule("topics", ["Sub"], "Topic:orders")
    files.rule("groups", ["Sub"], "Group:g")
    files.rule("both", ["Sub"], "Topic:orders", "Group:g")
    files.rule("others", ["All"], "Topic:bills", "Group:h")
    until(lambda: not refused_of(served, tokens["both"]))
    found = {name: refused_of(served, token) for name, token in tokens.items()}
    assert found["nobody"] == found["others"] == OF_TOPIC | OF_GROUP
    assert found["topics"] == OF_GROUP
    assert found["groups"] == OF_TOPIC
    assert found["both"] == set()


def refused_of(served: ServedRemoting, token: str) -> set[int]:
    with served.connect(fields={"SecurityToken": token}) as client:
        return refused(client)


def test_a_heartbeat_needs_the_right_to_each_topic_and_to_the_group(
    served: ServedRemoting, files: AccessFolder
) -> None:
    """The group's own retry topic is covered by the right to the group."""
    token = files.principal("reader")
    files.rule("reader", ["Sub"], "Topic:orders", "Group:g")
    until(lambda: not refused_of(served, token))
    with served.connect(fields={"SecurityToken": token}) as client:
        assert told(heartbeat(client, "c1", "h")) == FORBIDDEN
        assert told(heartbeat(client, "c1", "g", orders="*", batches="*")) == FORBIDDEN
        assert members(client) is None
        assert heartbeat(client, "c1", "g", **{"orders": "*", "%RETRY%g": "*"}).code == 0
        assert members(client) == ["c1"]
        assert lock(client, "c1", 0) == [0]


def test_a_pull_commits_only_for_a_group_of_the_caller(served: ServedRemoting, files: AccessFolder) -> None:
    """Reading needs only the right to the topic."""
    token, admin = files.principal("reader"), files.principal("admin")
    files.rule("reader", ["Sub"], "Topic:orders", "Group:g")
    files.rule("admin", ["All"], "*")
    until(lambda: not refused_of(served, token) and not refused_of(served, admin))
    with served.connect(fields={"SecurityToken": token}) as client:
        for group in ("g", "h"):
            commits = {"sysFlag": OWN | COMMIT, "commitOffset": 3, "consumerGroup": group}
            assert pull(client, 5, **commits).code == 0
    with served.connect(fields={"SecurityToken": admin}) as client:
        assert group_offset(client, setZeroIfNotFound="false") == (0, 3)
        assert group_offset(client, consumerGroup="h", setZeroIfNotFound="false") == (22, None)


def test_the_token_counts_for_its_request_and_a_revoked_one_for_none(
    served: ServedRemoting, files: AccessFolder
) -> None:
    token = files.principal("reader")
    files.rule("reader", ["Sub"], "Topic:orders")
    with served.connect() as client:
        until(lambda: pull(client, 0, SecurityToken=token).code == 0)
        assert told(pull(client, 0)) == UNAUTHENTICATED
        files.forget("reader")
        until(lambda: told(pull(client, 0, SecurityToken=token)) == UNAUTHENTICATED)


def test_refusals_and_pulls_are_audited_without_the_token(
    tmp_path: Path, served: ServedRemoting, files: AccessFolder
) -> None:
    token = files.principal("reader")
    files.rule("reader", ["Sub"], "Topic:orders")
    with served.connect(fields={"SecurityToken": token}) as client:
        until(lambda: pull(client, 0).code == 0)
        assert told(heartbeat(client, "c1")) == FORBIDDEN
    text = (tmp_path / "audit.log").read_text()
    assert token not in text
    deeds = {(deed["principal"], deed["action"], deed["outcome"]) for deed in map(json.loads, text.splitlines())}
    assert {("reader", "PULL_MESSAGE", "ALLOWED"), ("reader", "HEART_BEAT", "FORBIDDEN")} <= deeds


# -- TLS ------------------------------------------------------------------------------------------------------------


def test_messages_are_pulled_over_tls_and_not_without(built: BuiltStore, authority: Authority) -> None:
    pair = authority.issue("server")
    trust = Credentials(authority.ca).context()
    with serve_query_remoting(built.root, trust=trust, **pair.settings) as served:
        with served.connect(context=trust) as client:
            assert pull(client, 0).code == 0
            assert isinstance(client.socket, ssl.SSLSocket)
        with served.connect() as plain, pytest.raises(ConnectionError):
            pull(plain, 0)


def test_a_tls_client_at_a_plain_port_is_disconnected(built: BuiltStore, authority: Authority) -> None:
    with serve_query_remoting(built.root) as served, pytest.raises((ConnectionError, ssl.SSLError)):
        served.connect(context=Credentials(authority.ca).context())


def test_a_client_certificate_is_an_identity(
    tmp_path: Path, built: BuiltStore, authority: Authority, files: AccessFolder
) -> None:
    server, own = authority.issue("server"), authority.issue("reader", uses="clientAuth")
    files.principal("reader", certificates=["CN=reader"])
    files.rule("reader", ["Sub"], "Topic:orders")
    settings = {**server.settings, "tls_client_ca": authority.ca, "access_file": files.path}
    trust = Credentials(authority.ca, own.cert, own.key).context()
    with serve_query_remoting(built.root, trust=trust, **settings) as served, served.connect(context=trust) as client:
        assert pull(client, 0).code == 0
        assert told(heartbeat(client, "c1")) == FORBIDDEN


# -- connections ----------------------------------------------------------------------------------------------------


def is_closed(connection: socket.socket) -> bool:
    """Return True if the server closes or resets *connection*."""
    connection.settimeout(30)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def is_refused(served: ServedRemoting) -> bool:
    """Return True if the server does not keep a new connection."""
    try:
        with served.connect() as client:
            return is_closed(client.socket)
    except ConnectionError:
        return True


def samples(served: ServedRemoting, name: str) -> dict[str, float]:
    """Return the values of the samples of *name* by their labels' text."""
    lines = [line.rpartition(" ") for line in served.http.get("/metrics").text.splitlines()]
    return {label.removeprefix(name): float(value) for label, _, value in lines if label.partition("{")[0] == name}


def test_connections_beyond_the_limit_are_refused(built: BuiltStore) -> None:
    with serve_query_remoting(built.root, remoting_max_connections=2) as served:
        with served.connect() as one, served.connect() as two:
            assert pull(one, 0).code == pull(two, 0).code == 0
            assert is_refused(served)
            assert pull(one, 0).code == 0
            refusals = samples(served, "tidemark_remoting_refused_connections_total")
            assert refusals == {'{reason="TOO_MANY_CONNECTIONS"}': 1}
        until(lambda: samples(served, "tidemark_remoting_connections") == {"": 0})
        with served.connect() as client:
            assert pull(client, 0).code == 0


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\xff" * 64, (1 << 25).to_bytes(4, "big") + bytes(8)]
)
def test_bytes_that_are_no_frame_close_the_connection(built: BuiltStore, data: bytes) -> None:
    with serve_query_remoting(built.root) as served, served.connect() as healthy:
        with served.connect() as client:
            client.socket.sendall(data)
            assert is_closed(client.socket)
        assert pull(healthy, 0).code == 0
        assert sum(samples(served, "tidemark_remoting_refused_connections_total").values()) == 1


def test_a_silent_connection_is_closed(built: BuiltStore) -> None:
    with serve_query_remoting(built.root, remoting_idle_timeout_ms=1_000) as served, served.connect() as client:
        assert pull(client, 0).code == 0
        assert is_closed(client.socket)


# -- metrics --------------------------------------------------------------------------------------------------------


def test_requests_are_counted_by_name_and_outcome(built: BuiltStore) -> None:
    with serve_query_remoting(built.root) as served, served.connect() as client:
        pull(client, 0)
        pull(client, 0, topic="nothing")
        client.call(RequestCode.SEND_MESSAGE)
        client.call(999)
        assert samples(served, "tidemark_remoting_connections") == {"": 1}
        assert samples(served, "tidemark_remoting_requests_total") == {
            '{request="PULL_MESSAGE",response="SUCCESS"}': 1,
            '{request="PULL_MESSAGE",response="TOPIC_NOT_EXIST"}': 1,
            '{request="SEND_MESSAGE",response="REQUEST_CODE_NOT_SUPPORTED"}': 1,
            '{request="OTHER",response="REQUEST_CODE_NOT_SUPPORTED"}': 1,
        }
        assert samples(served, "rocketmq_messages_out_total") == {'{topic="orders"}': 10}
