"""A store with one damaged file: readers return the whole data, and name the damage."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path

import httpx
import pytest
from hypothesis import strategies as st

from services.indexer.query.app import create_app
from services.indexer.query.config import QuerySettings
from services.writer.config import WriterSettings
from services.writer.log.open_store import open_store, release_store
from tests.builders import wire_batch
from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tests.integration.writer.harness import RunningWriter
from tests.pipeline_runs import build, plan_of
from tidemark.errors import StoreError
from tidemark.index.check.scope import whole_store
from tidemark.index.check.store import check_store
from tidemark.index.end_of_log import find_end_of_log
from tidemark.status import BY_REASON
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import topics_pb2

SIZES = {
    "consume_queue_file_size_bytes": 400,
    "batch_consume_queue_file_size_bytes": 460,
    "index_slots": 20,
    "index_entries": 80,
}
QUESTIONS = (
    "/v1/topics",
    "/v1/topics/orders",
    "/v1/topics/orders/queues/0/messages",
    "/v1/topics/orders/queues/0/messages?offset=latest&semantics=rocketmq",
    "/v1/topics/orders/queues/1/messages?tag=A&body_encoding=json",
    "/v1/topics/batches/queues/0/messages",
    "/v1/topics/orders/queues/0/offset?time=1",
    "/v1/topics/orders/messages",
    "/v1/topics/orders/messages?key=k1",
    "/v1/messages/at/0",
    "/v1/groups",
    "/v1/status",
    "/v1/corruptions",
    "/metrics",
)


def properties(number: int) -> bytes:
    return f"KEYS\x01k{number}\x02TAGS\x01{'AB'[number % 2]}\x02".encode()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build two topics, one of inner batches, with a real writer and the pipeline's own code."""
    root = tmp_path_factory.mktemp("whole") / "store"
    with RunningWriter(root, commit_log_segment_size_bytes=8192) as writer:
        writer.topics.CreateTopic(
            topics_pb2.CreateTopicRequest(name="batches", queue_count=1, attributes={"queue.type": "BatchCQ"}),
            timeout=30,
        )
        for number in range(30):
            batch = wire_batch((b"body", properties(number), 0), (b'{"a":1}', properties(number + 1), 0))
            writer.append(
                "batches" if number % 5 == 0 else "orders", batch, queue_id=0 if number % 5 == 0 else number % 2
            )
    build(plan_of(root, shards=1, **SIZES))
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"orders@g":{"0":3}}}')
    return root


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "store"


@st.composite
def damaged(draw: st.DrawFn, whole: Path) -> tuple[str, bytes]:
    """Draw (a file of the store, its new content)."""
    files = sorted(str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file())
    kinds = {Path(name).parts[0] for name in files}
    kind = draw(st.sampled_from(sorted(kinds)))
    name = draw(st.sampled_from([name for name in files if Path(name).parts[0] == kind]))
    right = (whole / name).read_bytes()
    if len(right) <= 512 or draw(st.integers(0, 3)) == 0:
        return name, draw(mutated(st.just(right)) | st.binary(max_size=64))
    data = bytearray(right)  # significant bytes of a large file
    used = max(len(right.rstrip(b"\0")), 8)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, used - 1)) & -4
        wrong = draw(
            st.integers(-3, 40).map(lambda one: one.to_bytes(4, "big", signed=True)) | st.binary(min_size=1, max_size=8)
        )
        data[at : at + len(wrong)] = wrong
    return name, bytes(data[: len(right)])


async def ask(root: Path) -> None:
    """Send every kind of request to a query service that opens the store as it is."""
    try:
        app = create_app(QuerySettings(store_root=root, index_slots=20, index_entries=80))
    except StoreError:
        return
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            for question in QUESTIONS:
                answer = await client.get(question)
                if answer.status_code >= 400:
                    assert answer.json()["reason"] in BY_REASON, (question, answer.text)
    finally:
        await app.state.service.close()


@fuzz(few=12, at_once=25, data=st.data())
def test_readers_report_damage_with_a_named_error(whole: Path, copy: Path, data: st.DataObject) -> None:
    """HTTP requests and the store check name it; so do the search for the log's end and a writer's start."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    name, content = data.draw(damaged(whole))
    (copy / name).write_bytes(content)
    asyncio.run(ask(copy))
    paths = StorePaths(copy)
    with contextlib.suppress(StoreError, FileNotFoundError):
        check_store(paths, whole_store(paths), index_slots=20)
    with contextlib.suppress(StoreError):
        log = plan_of(copy, **SIZES).open_log()
        find_end_of_log(paths, log)
        log.close()
    with contextlib.suppress(StoreError):
        release_store(open_store(WriterSettings(store_root=copy, min_free_disk_bytes=0), DiskStorage()))
