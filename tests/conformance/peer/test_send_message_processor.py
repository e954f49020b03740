"""RocketMQ's SendMessageProcessorTest, PullMessageProcessorTest and PullRequestHoldServiceTest: answers on the wire."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.status import STATUS
from tidemark.v1 import commit_log_pb2 as pb

pytestmark = pytest.mark.conformance

# RocketMQ's response code of a PutMessageStatus → the equivalent gRPC codes.
CODES = {
    "MESSAGE_ILLEGAL": {"INVALID_ARGUMENT"},  # 13
    "PROPERTIES_SIZE_EXCEEDED": {"INVALID_ARGUMENT"},  # 13
    "SERVICE_NOT_AVAILABLE": {"UNAVAILABLE", "RESOURCE_EXHAUSTED"},  # 14; a full disk is one of them
    "OS_PAGE_CACHE_BUSY": {"RESOURCE_EXHAUSTED"},  # 2, system busy
    "UNKNOWN_ERROR": {"INTERNAL", "UNAVAILABLE"},  # 1, system error
    "IN_SYNC_REPLICAS_NOT_ENOUGH": {"UNAVAILABLE"},  # 1, system error
}


def test_sp1_put_statuses_have_their_codes() -> None:
    """Illegal is the caller's fault, busy and unavailable may be retried; the others are answers."""
    seen: dict[str, set[str]] = {}
    for status in STATUS.values():
        if status.put_status:
            seen.setdefault(status.put_status, set()).add(status.grpc_code)
    assert seen == CODES
    assert {name for name, number in pb.PutStatus.items() if number} == {
        "PUT_STATUS_PUT_OK",
        "PUT_STATUS_FLUSH_DISK_TIMEOUT",
        "PUT_STATUS_FLUSH_SLAVE_TIMEOUT",
        "PUT_STATUS_SLAVE_NOT_AVAILABLE",
    }


def pull(client: httpx.Client, topic: str, **parameters: Any) -> httpx.Response:
    return client.get(f"/v1/topics/{topic}/queues/0/messages", params=parameters)


def test_pp1_pull_statuses_have_their_codes(tmp_path: Path) -> None:
    """They are unknown topic, found, empty queue, end, beyond the end, below the minimum."""
    built = BuiltStore(tmp_path / "store", log_file_size=4096)
    built.topic("t")
    built.topic("empty")
    for _ in range(9):
        built.append("t", bytes(900))
    built.publish()
    (built.root / "commitlog" / f"{0:020d}").unlink()
    with serve_query(built.root) as client:
        assert (pull(client, "nowhere", offset=0).status_code, pull(client, "t", offset=5).status_code) == (404, 200)
        for offset in (0, 7):
            empty = pull(client, "empty", offset=offset)
            assert (empty.status_code, empty.json()["status"]) == (200, "NO_MESSAGE_IN_QUEUE")
            assert empty.json()["next_offset"] == 0
        end = pull(client, "t", offset=9)
        assert (end.status_code, end.json()["status"], end.json()["next_offset"]) == (200, "OFFSET_OVERFLOW_ONE", 9)
        beyond = pull(client, "t", offset=10)
        assert (beyond.status_code, beyond.json()["next_offset"]) == (416, 9)
        below = pull(client, "t", offset=0)
        assert (below.status_code, below.json()["reason"]) == (410, "OFFSET_TOO_SMALL")
        assert below.json()["next_offset"] == below.json()["min_offset"] > 0


def test_ph1_waiting_pulls_are_answered(tmp_path: Path) -> None:
    """They wait with and without a tag, on queues with and without messages, while messages arrive in other queues."""
    built = BuiltStore(tmp_path / "store")
    built.topic("t")
    built.topic("other")
    built.append("t", b"m0", {"TAGS": "A"})
    built.publish()
    with serve_query(built.root) as client, ThreadPoolExecutor(4) as pool:

        def hold(topic: str, **parameters: Any) -> Future[httpx.Response]:
            return pool.submit(pull, client, topic, wait_ms=20_000, body_encoding="utf8", **parameters)

        plain, tagged, short = hold("t", offset=1), hold("t", offset=1, tag="B"), pull(client, "other", offset=0)
        assert short.json()["status"] == "NO_MESSAGE_IN_QUEUE"
        built.append("other", b"o0")
        built.publish()
        built.append("t", b"m1", {"TAGS": "A"})
        built.publish()
        assert [message["body"] for message in plain.result(60).json()["messages"]] == ["m1"]
        built.append("t", b"m2", {"TAGS": "B"})
        built.publish()
        assert [message["body"] for message in tagged.result(60).json()["messages"]] == ["m2"]
        nobody = pull(client, "other", offset=1, wait_ms=20)
        assert (nobody.status_code, nobody.json()["status"]) == (200, "OFFSET_OVERFLOW_ONE")
