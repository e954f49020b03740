"""Starts and stops of the query service with clients of the remoting protocol."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.fixed_ports import fixed_port
from tests.remoting_client import RemotingClient
from tests.waiting import until
from tidemark.remoting import RequestCode

from .calls import commit_fields, heartbeat, hold, outcome, pull

pytestmark = pytest.mark.integration
COUNT = 10


class Process:
    """A query service in a process of its own."""

    def __init__(self, built: BuiltStore, port: int) -> None:
        self.port = port
        settings = {
            "TIDEMARK_STORE_ROOT": str(built.root),
            "TIDEMARK_QUERY_LISTEN": "127.0.0.1:0",
            "TIDEMARK_QUERY_REMOTING_LISTEN": f"127.0.0.1:{port}",
        }
        command = [sys.executable, "-m", "services.indexer", "query"]
        self.process = subprocess.Popen(command, env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True)
        self.url = ""

    def started(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            event = json.loads(line)
            if event["event"] == "query_started":
                self.url = f"http://{event['address']}"
                return
        raise AssertionError("the service did not start")


@pytest.fixture
def service(built: BuiltStore) -> Iterator[Process]:
    started = Process(built, fixed_port())
    try:
        started.started()
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def waiting(service: Process) -> int:
    return int(httpx.get(f"{service.url}/v1/status").json()["query"]["waiting_requests"])


def test_a_stop_answers_held_pulls_and_ends_with_status_0(service: Process) -> None:
    with RemotingClient(service.port) as one, RemotingClient(service.port) as two:
        for client in (one, two):
            for _ in range(3):
                hold(client, COUNT)
        until(lambda: waiting(service) == 6)
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        for client in (one, two):
            assert {outcome(client.receive()) for _ in range(3)} == {(19, COUNT, 0, COUNT)}
            with pytest.raises(ConnectionError):
                client.receive()
        assert service.process.wait(60) == 0
        assert time.monotonic() - began < 20  # the pulls would have waited longer


def test_clients_that_ask_again_during_a_stop_are_told_to_go_away(service: Process) -> None:
    """A request over HTTP that is still answered holds the stop open meanwhile."""
    with RemotingClient(service.port) as client, RemotingClient(service.port) as committing:
        heartbeat(committing, "c1")
        committing.send(RequestCode.UPDATE_CONSUMER_OFFSET, commit_fields(3), one_way=True)
        hold(client, COUNT)
        until(lambda: waiting(service) == 1)
        host, _, port = service.url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), 30) as slow:
            slow.sendall(b"POST /v1/groups/g/members HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            service.process.send_signal(signal.SIGTERM)
            assert outcome(client.receive())[0] == 19
            answer = pull(client, COUNT)
            assert answer.code == 1500
            assert "connect again" in answer.remark
        assert service.process.wait(60) == 0


def test_the_next_process_takes_over_clients_commits_and_members(built: BuiltStore, service: Process) -> None:
    with RemotingClient(service.port) as client:
        heartbeat(client, "c1")
        client.send(RequestCode.UPDATE_CONSUMER_OFFSET, commit_fields(3), one_way=True)
        assert pull(client, 0).code == 0
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0
    following = Process(built, service.port)
    try:
        following.started()
        assert httpx.get(f"{following.url}/v1/groups/g/topics/orders/queues/0/offset").json()["offset"] == 3
        reset = httpx.put(f"{following.url}/v1/groups/g/topics/orders/queues/0/offset", json={"offset": 0})
        assert reset.json()["reason"] == "GROUP_ACTIVE"  # the member may come back
        with RemotingClient(service.port) as client:
            assert heartbeat(client, "c1").code == 0
    finally:
        following.process.kill()
        following.process.communicate()


def test_an_address_in_use_is_reported(built: BuiltStore) -> None:
    """The exit status is 1, as for the address of the REST API."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = Process(built, taken.getsockname()[1])
        killer = threading.Timer(60, refused.process.kill)
        killer.start()
        try:
            _, errors = refused.process.communicate()
        finally:
            killer.cancel()
    assert refused.process.returncode == 1, errors
    event = json.loads(errors)
    assert event["event"] == "query_failed"
    assert f"{address} for RocketMQ's clients (TIDEMARK_QUERY_REMOTING_LISTEN)" in event["message"]
