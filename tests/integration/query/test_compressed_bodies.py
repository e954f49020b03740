"""Compressed bodies that are much larger when decompressed: no response has too much of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.bodies import body_of
from tests.built_store import BuiltStore
from tests.query_server import serve_query

pytestmark = pytest.mark.integration
MESSAGES, SIZE, LIMIT = 5, 16 << 20, 64 << 20  # 80 MiB in 80 kB
QUEUE = "/v1/topics/orders/queues/0/messages"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    store = BuiltStore(tmp_path_factory.mktemp("compressed") / "store", log_file_size=1 << 20)
    store.topic("orders")
    body = zlib.compress(bytes(SIZE))
    for _ in range(MESSAGES):
        store.append("orders", body, {"KEYS": "k"}, sys_flag=0x301)
    store.publish()
    with serve_query(store.root, query_max_body_bytes=LIMIT) as client:
        yield client


def page_of(answer: httpx.Response) -> tuple[list[int], int]:
    """Return (sizes of the bodies, next offset)."""
    answer.raise_for_status()
    if answer.headers["content-type"] == "application/json":
        content: dict[str, Any] = answer.json()
        return [len(body_of(message)) for message in content["messages"]], content["next_offset"]
    with pa.ipc.open_stream(answer.content) as reader:
        facts = reader.schema.metadata
        return [len(body) for body in reader.read_all()["body"].to_pylist()], int(facts[b"tidemark.next_offset"])


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.apache.arrow.stream"])
def test_a_pull_ends_before_its_decompressed_bodies_exceed_the_limit(client: httpx.Client, accept: str) -> None:
    """The next pull continues there: every message comes, each decompressed."""
    seen, offset = 0, 0
    while offset < MESSAGES:
        sizes, offset = page_of(client.get(QUEUE, params={"offset": offset}, headers={"accept": accept}))
        assert sizes
        assert sum(sizes) <= LIMIT
        assert min(sizes) >= SIZE
        seen += len(sizes)
    assert seen == MESSAGES


def test_a_search_ends_before_its_decompressed_bodies_exceed_the_limit(client: httpx.Client) -> None:
    """Its cursor continues."""
    cursor: dict[str, str] = {}
    seen = 0
    while True:
        page = client.get("/v1/topics/orders/messages", params={"key": "k", **cursor}).raise_for_status().json()
        assert len(page["messages"]) <= LIMIT // SIZE
        assert all(message["sys_flag"] & 1 == 0 for message in page["messages"])
        seen += len(page["messages"])
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == MESSAGES
