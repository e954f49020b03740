"""Rights at the query service, over real HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.indexer.query.web.route_access import _NEEDS
from tests.access_files import AccessFolder
from tests.built_store import BuiltStore
from tests.certificates import Authority
from tests.integration.writer.harness import RunningWriter, stored_records
from tests.query_server import serve_query, serve_query_over_tls
from tidemark.client import Consumer, Credentials, Query
from tidemark.errors import ForbiddenError, UnauthenticatedError

from .conftest import Deeds

pytestmark = pytest.mark.integration

_PATH = {
    "topic": "orders",
    "queue_id": "0",
    "group": "g",
    "member_id": "m",
    "physical_offset": "0",
    "offset_msg_id": "7F00000100002A9F0000000000000000",
}
_QUEUES = {topic: {"topic": topic, "queue_id": 0, "offset": 0} for topic in ("orders", "bills")}
_BODIES: dict[str, Any] = {"/v1/topics": {"topic": "new"}, "/v1/pull": {"queues": [_QUEUES["orders"]]}}
_QUERIES = {("GET", "/v1/pull"): {"topic": "orders"}}
_GUARDED = [(method, path) for (method, path), needs in _NEEDS.items() if not needs.is_open]
_MAY_ALL_THAT_ARE_KNOWN = {("GET", path) for path in ("/v1/watermark", "/v1/topics", "/v1/groups")}


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store with a message in each of two topics."""
    store = BuiltStore(tmp_path / "store")
    for name in ("orders", "bills"):
        store.topic(name)
        store.append(name, f"{name} 1".encode(), {"KEYS": "k"})
    store.publish()
    return store


@pytest.fixture
def client(store: BuiltStore, settings: dict[str, Any]) -> Iterator[httpx.Client]:
    with serve_query(store.root, **settings) as client:
        yield client


def shows(token: str) -> dict[str, str]:
    """Return the headers with the token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("token", [None, "x"])
def test_an_unknown_caller_is_refused_everywhere(client: httpx.Client, token: str | None) -> None:
    """This covers every route except those that reveal nothing of the store."""
    headers = {} if token is None else shows(token)
    for method, path in _GUARDED:
        answer = client.request(method, path.format(**_PATH), headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (401, "UNAUTHENTICATED"), path
        assert answer.headers["WWW-Authenticate"] == "Bearer"

    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200


def test_a_principal_without_rights_is_forbidden(client: httpx.Client, files: AccessFolder, deeds: Deeds) -> None:
    """Only the watermark, and empty lists, are answered."""
    headers, admin = shows(files.principal("nobody")), shows(files.principal("admin"))
    files.rule("admin", ["All"], "*")
    time.sleep(0.1)
    first = client.get("/v1/messages/at/0", headers=admin).json()["messages"][0]
    there = {**_PATH, "offset_msg_id": first["offset_msg_id"]}
    for method, path in _GUARDED:
        body = _BODIES.get(path, {"topics": ["orders"]})
        query = _QUERIES.get((method, path))
        answer = client.request(method, path.format(**there), headers=headers, json=body, params=query)
        if (method, path) in _MAY_ALL_THAT_ARE_KNOWN:
            assert answer.status_code == 200, path
            assert answer.json().get("topics", []) == answer.json().get("groups", []) == []
        else:
            assert (answer.status_code, answer.json()["reason"]) == (403, "FORBIDDEN"), path
            assert answer.json()["principal"] == "nobody"
    refused = client.get("/v1/groups/other", headers={**headers, "x-request-id": "mine-7"})
    assert refused.json()["request_id"] == "mine-7"
    assert [deed["resource"] for deed in deeds() if deed.get("request_id") == "mine-7"] == ["Sub|Get Group:other"]
    told = {deed["action"] for deed in deeds() if deed["outcome"] == "FORBIDDEN"}
    assert told == {f"{method} {path}" for method, path in _GUARDED if (method, path) not in _MAY_ALL_THAT_ARE_KNOWN}


@pytest.mark.parametrize("path", ["/v1/topics/orders/queues/0/messages", "/v1/pull?queue=orders:0:0"])
def test_a_damaged_unit_shows_no_record_of_another_topic(
    client: httpx.Client, store: BuiltStore, files: AccessFolder, path: str
) -> None:
    """`verify=reader` would send what the unit points at; a caller that may read the whole store gets it."""
    reader, admin = shows(files.principal("reader")), shows(files.principal("admin"))
    files.rule("reader", ["Sub"], "Topic:orders")
    files.rule("admin", ["All"], "*")
    bill = store.append("bills", b"of another topic")
    order = store.append("orders", b"an order")
    store.write_unit("orders", 0, order._replace(physical_offset=bill.physical_offset, size=bill.size), {})
    store.publish()
    time.sleep(0.1)
    separator = "&" if "?" in path else "?"
    pulled = {
        name: client.get(f"{path}{separator}verify=reader", headers={**headers, "Accept": "application/octet-stream"})
        for name, headers in (("reader", reader), ("admin", admin))
    }
    assert all(b"orders 1" in answer.content for answer in pulled.values())
    assert [name for name, answer in pulled.items() if b"of another topic" in answer.content] == ["admin"]


def test_a_reader_can_read_only_its_topics(client: httpx.Client, files: AccessFolder) -> None:
    """Queue, key, position and id work for them; the others are not even listed."""
    token = files.principal("reader")
    files.rule("reader", ["Sub"], "Topic:orders")
    time.sleep(0.1)
    headers = shows(token)
    assert [topic["topic"] for topic in client.get("/v1/topics", headers=headers).json()["topics"]] == ["orders"]
    codes = {
        path: client.get(path, headers=headers).status_code
        for path in (
            "/v1/topics/orders/queues/0/messages",
            "/v1/topics/bills/queues/0/messages",
            "/v1/topics/orders/messages?key=k",
            "/v1/topics/bills/messages?key=k",
            "/v1/messages/at/0",
        )
    }
    assert codes == {
        "/v1/topics/orders/queues/0/messages": 200,
        "/v1/topics/bills/queues/0/messages": 403,
        "/v1/topics/orders/messages?key=k": 200,
        "/v1/topics/bills/messages?key=k": 403,
        "/v1/messages/at/0": 200,
    }


def test_a_topic_names_the_actions_that_the_caller_is_allowed(client: httpx.Client, files: AccessFolder) -> None:
    """A rule for other topics, and a refusal, are taken into account."""
    reader, both = files.principal("reader"), files.principal("both")
    files.rule("reader", ["Sub"], "Topic:orders")
    files.rule("both", ["Pub", "Sub"], "Topic:*")
    files.rule("both", ["Pub"], "Topic:bills", decision="Deny")
    time.sleep(0.1)
    allowed = {
        (token, topic): client.get(f"/v1/topics/{topic}", headers=shows(token)).json()["caller_actions"]
        for token, topic in ((reader, "orders"), (both, "orders"), (both, "bills"))
    }
    assert [*allowed.values()] == [["Sub"], ["Pub", "Sub"], ["Sub"]]


def test_a_pull_of_many_queues_needs_the_right_to_each_topic(client: httpx.Client, files: AccessFolder) -> None:
    """If one right is missing, nothing is returned; the refusal does not depend on the topic's existence."""
    headers = shows(files.principal("reader"))
    files.rule("reader", ["Sub"], "Topic:orders")
    time.sleep(0.1)
    own = client.post("/v1/pull", json={"queues": [_QUEUES["orders"]]}, headers=headers)
    assert [one["topic"] for one in own.json()["answers"]] == ["orders"]
    for other in (_QUEUES["bills"], {**_QUEUES["bills"], "topic": "nope"}):
        refused = client.post("/v1/pull", json={"queues": [_QUEUES["orders"], other]}, headers=headers)
        assert (refused.status_code, refused.json()["right"]) == (403, f"Sub|Get Topic:{other['topic']}")
        assert "orders 1" not in refused.text


def test_a_pull_of_topics_needs_the_right_to_each(client: httpx.Client, files: AccessFolder) -> None:
    headers = shows(files.principal("reader"))
    files.rule("reader", ["Sub"], "Topic:orders")
    time.sleep(0.1)
    assert client.get("/v1/pull?topic=orders", headers=headers).status_code == 200
    for asked in ("topic=orders&topic=bills", "topic=nope", "queue=orders:0&queue=bills:0"):
        refused = client.get(f"/v1/pull?follow=true&{asked}", headers=headers)
        assert (refused.status_code, refused.json()["reason"]) == (403, "FORBIDDEN"), asked


@pytest.mark.parametrize(("loses", "reason"), [("right", "FORBIDDEN"), ("token", "UNAUTHENTICATED")])
def test_a_follower_that_loses_its_right_gets_no_further_message(
    client: httpx.Client, files: AccessFolder, store: BuiltStore, loses: str, reason: str
) -> None:
    headers = shows(files.principal("reader"))
    files.rule("reader", ["Sub"], "Topic:orders")
    time.sleep(0.1)
    asked = {"follow": "true", "body_encoding": "utf8"}
    with client.stream("GET", "/v1/topics/orders/queues/0/messages", params=asked, headers=headers) as answer:
        lines = answer.iter_lines()
        assert json.loads(next(lines))["body"] == "orders 1"
        if loses == "right":
            files.rule("reader", ["Sub"], "Topic:orders", decision="Deny")
        else:
            files.forget("reader")
        time.sleep(0.2)
        store.append("orders", b"secret", {})
        store.publish()
        rest = [json.loads(line) for line in lines]
    assert [(line["event"], line["reason"]) for line in rest] == [("problem", reason)]


def test_a_lookup_by_offset_or_id_needs_the_right_to_the_topic(client: httpx.Client, files: AccessFolder) -> None:
    """The path names no topic: the right is checked once the record's topic is known."""
    admin, reader = files.principal("admin"), files.principal("reader")
    files.rule("admin", ["All"], "*")
    files.rule("reader", ["Get"], "Topic:orders")
    time.sleep(0.1)
    (bill,) = client.get("/v1/topics/bills/queues/0/messages", headers=shows(admin)).json()["messages"]
    for path in (f"/v1/messages/at/{bill['physical_offset']}", f"/v1/messages/{bill['offset_msg_id']}"):
        assert client.get(path, headers=shows(admin)).status_code == 200
        answer = client.get(path, headers=shows(reader))
        assert (answer.status_code, answer.json()["right"]) == (403, "Sub|Get Topic:bills")
        assert "bills 1" not in answer.text


def test_send_back_needs_the_right_to_group_and_topic(client: httpx.Client, files: AccessFolder) -> None:
    """An id has its message's topic; a named topic is refused whether it has such a message or not."""
    reader, admin = files.principal("reader"), files.principal("admin")
    files.rule("reader", ["Sub"], "Group:g", "Topic:orders")
    files.rule("admin", ["All"], "*")
    time.sleep(0.1)
    (bill,) = client.get("/v1/topics/bills/queues/0/messages", headers=shows(admin)).json()["messages"]

    def refused(group: str, message: dict[str, Any]) -> str:
        answer = client.post(f"/v1/groups/{group}/retry", json={"messages": [message]}, headers=shows(reader))
        assert answer.status_code == 403
        return str(answer.json()["right"])

    place = {"queue_id": 0, "queue_offset": 0}
    assert refused("h", {"topic": "orders", **place}) == "Sub Group:h"
    for named in ({"topic": "bills", **place}, {"topic": "bills", **place, "queue_offset": 9}):
        assert refused("g", named) == "Sub Topic:bills"
    assert refused("g", {"message_id": bill["offset_msg_id"]}) == "Sub Topic:bills"


@pytest.mark.usefixtures("wire")
def test_a_consumer_needs_the_rights_to_group_and_topics(client: httpx.Client, files: AccessFolder) -> None:
    """Both the group and each topic are needed; a consumer needs no other right."""
    token = files.principal("reader")
    files.rule("reader", ["Sub"], "Group:g", "Topic:orders")
    time.sleep(0.1)
    url = str(client.base_url)
    with Consumer("orders", group="g", url=url, credentials=Credentials(token=token)) as consumer:
        assert [message.body for message in consumer.poll(timeout_s=5)] == [b"orders 1"]
        consumer.commit()
    with (
        pytest.raises(ForbiddenError),
        Consumer("bills", group="g", url=url, credentials=Credentials(token=token)) as consumer,
    ):
        consumer.poll(timeout_s=5)
    with (
        pytest.raises(ForbiddenError),
        Consumer("orders", group="h", url=url, credentials=Credentials(token=token)) as consumer,
    ):
        consumer.poll(timeout_s=5)
    with Query(url, credentials=Credentials(token="x")) as query, pytest.raises(UnauthenticatedError):
        query.watermark()


def test_an_append_is_forwarded_with_the_callers_token(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any]
) -> None:
    """The writer gets the caller's own token: the query service lends no right."""
    token = files.principal("orders")
    files.rule("orders", ["Pub"], "Topic:orders")
    body = {"messages": [{"body": "hello"}]}
    with (
        RunningWriter(tmp_path / "store", **settings) as writer,
        serve_query(tmp_path / "store", writer_address=writer.address, **settings) as client,
    ):
        answers = [
            client.post(f"/v1/topics/{topic}/messages", json=body, headers=shows(token)).status_code
            for topic in ("orders", "bills")
        ]
    assert answers == [201, 403]
    assert [record.body for record in stored_records(tmp_path / "store")] == [b"hello"]


def test_creating_a_topic_needs_the_right_to_its_name(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any], deeds: Deeds
) -> None:
    """The body has the name: the right is checked after the body is read, and the outcome is logged."""
    token = files.principal("orders")
    files.rule("orders", ["Create"], "Topic:orders-*")
    with (
        RunningWriter(tmp_path / "store", **settings) as writer,
        serve_query(tmp_path / "store", writer_address=writer.address, **settings) as client,
    ):
        codes = [
            client.post("/v1/topics", json={"topic": topic, "queues": queues}, headers=shows(token)).status_code
            for topic, queues in (("orders-eu", 1), ("bills", 1), ("orders-eu", 2))
        ]
    assert codes == [201, 403, 409]
    told = [(deed["resource"], deed["outcome"]) for deed in deeds() if deed["action"] == "POST /v1/topics"]
    may, may_not = "Create Topic:orders-eu", "Create Topic:bills"
    assert told == [(may, "OK"), (may_not, "FORBIDDEN"), (may, "TOPIC_EXISTS")]


def test_reading_the_raw_log_needs_a_right_to_the_store(client: httpx.Client, files: AccessFolder) -> None:
    """Get on the store shows the places of its files, Sub their contents; a right to topics shows neither."""
    tokens = {name: files.principal(name) for name in ("reader", "operator", "auditor")}
    files.rule("reader", ["Sub", "Get"], "Topic:*")
    files.rule("operator", ["Get"], "Cluster:*")
    files.rule("auditor", ["Sub"], "Cluster:*")
    time.sleep(0.1)
    codes = {
        name: [
            client.get(path, headers=shows(token)).status_code
            for path in ("/v1/log", "/v1/log/records?from=0", "/v1/log/bytes?from=0")
        ]
        for name, token in tokens.items()
    }
    assert codes == {"reader": [403, 403, 403], "operator": [200, 403, 403], "auditor": [403, 200, 200]}


def test_console_files_need_no_token(client: httpx.Client) -> None:
    """They hold no data: the console asks for a token."""
    assert client.get("/console").status_code == client.get("/console/main.js").status_code == 200


def test_a_client_certificate_identifies_a_principal(
    tmp_path: Path, store: BuiltStore, files: AccessFolder, settings: dict[str, Any], authority: Authority
) -> None:
    """A certificate that the file does not name is unknown."""
    server, good, other = (authority.issue(name) for name in ("query-8", "orders-8", "other-8"))
    files.principal("orders", certificates=["CN=orders-8"])
    files.rule("orders", ["Sub"], "Topic:orders")
    tls = {**server.settings, "tls_client_ca": authority.ca}
    codes = []
    for pair in (good, other):
        trust = Credentials(authority.ca, pair.cert, pair.key).context()
        with serve_query_over_tls(store.root, trust, **tls, **settings) as client:
            codes.append(client.get("/v1/topics/orders/queues/0/messages").status_code)
    assert codes == [200, 401]


def test_an_append_with_a_certificate_is_checked_by_the_query_service(
    tmp_path: Path, files: AccessFolder, settings: dict[str, Any], authority: Authority
) -> None:
    """There is no token to pass on: the service checks the right itself, and presents its own token to the writer."""
    server, client = authority.issue("query-9"), authority.issue("orders-9")
    own_token = tmp_path / "query.token"
    own_token.write_text(files.principal("query"))
    files.principal("orders", certificates=["CN=orders-9"])
    files.rule("query", ["Pub"], "Topic:*")
    files.rule("orders", ["Pub"], "Topic:orders")
    trust = Credentials(authority.ca, client.cert, client.key).context()
    tls = {**server.settings, "tls_client_ca": authority.ca, "token_file": own_token}
    with (
        RunningWriter(tmp_path / "store", **settings) as writer,
        serve_query_over_tls(tmp_path / "store", trust, writer_address=writer.address, **tls, **settings) as http,
    ):
        body = {"messages": [{"body": "hello"}]}
        codes = [http.post(f"/v1/topics/{topic}/messages", json=body).status_code for topic in ("orders", "bills")]
    assert codes == [201, 403]
    assert [record.body for record in stored_records(tmp_path / "store")] == [b"hello"]


def test_a_caller_above_the_rate_gets_a_retry_time(store: BuiltStore) -> None:
    """The rate is per address if there is no access file."""
    with serve_query(store.root, max_requests_per_s=3) as client:
        answers = [client.get("/v1/watermark") for _ in range(8)]
        assert {answer.status_code for answer in answers} == {200, 429}
        refused = answers[-1]
        assert refused.json()["reason"] == "RATE_LIMITED"
        assert int(refused.headers["Retry-After"]) >= 1
        assert client.get("/healthz").status_code == 200


def test_openapi_documents_the_token_scheme(client: httpx.Client) -> None:
    """It also documents the refusals."""
    document = client.get("/openapi.json").json()
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for method, path in _GUARDED:
        assert {"401", "403", "429"} <= document["paths"][path][method.lower()]["responses"].keys(), path


@pytest.mark.parametrize("body", [{"keys": ["k"]}, {"offsets": [{"queue_id": 0, "offset": 0}]}])
def test_a_lookup_of_many_messages_needs_the_right_to_read_the_topic(
    client: httpx.Client, files: AccessFolder, body: dict[str, Any]
) -> None:
    reader, producer = files.principal("reader"), files.principal("producer")
    files.rule("reader", ["Sub"], "Topic:orders")
    files.rule("producer", ["Pub"], "Topic:orders", "Topic:bills")
    time.sleep(0.1)

    def status(token: str, topic: str) -> int:
        return client.post(f"/v1/topics/{topic}/messages:lookup", json=body, headers=shows(token)).status_code

    assert status(reader, "orders") == 200
    assert status(reader, "bills") == status(producer, "orders") == 403
