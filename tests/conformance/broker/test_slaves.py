"""RocketMQ's own slave of a Tidemark store under load, through kills of either side: equal logs, queues and topics."""

from __future__ import annotations

import random
import time
from pathlib import Path

import httpx
import orjson
import pytest

from tests.fixed_ports import fixed_ports
from tests.waiting import until
from tidemark.client import BATCH_QUEUE, Message, Producer, Topics
from tidemark.errors import StoreError
from tidemark.local.local_stack import WRITER, LocalStack

from .file_sizes import FileSizes
from .real_broker import RealSlave
from .repeated import repeated
from .same_files import compare_files
from .test_attached import tell

pytestmark = [pytest.mark.conformance, pytest.mark.exhaustive, pytest.mark.timeout(600)]

SIZES = FileSizes(
    commit_log=1 << 18, consume_queue=4_000, batch_consume_queue=4_600, index_slots=100, index_entries=400
)
NAME = "broker-a"
SYNC_S = 150.0  # a slave asks for topics once a minute


def send_some(producer: Producer, source: random.Random, count: int) -> None:
    """Send single messages and batches of both queue types."""
    for _ in range(count):
        topic = source.choice(("orders", "batches"))
        bodies = [source.randbytes(source.randint(1, 2_000)) for _ in range(source.randint(1, 5))]
        producer.send_batch([Message(topic, body, tag="t", keys=("k",)) for body in bodies])
        producer.send("orders", b"later", delay_level=1)


def test_a_real_slave_copies_a_store_through_kills_of_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = fixed_ports(4)[0]
    stack = LocalStack(
        tmp_path / "store",
        environment={
            **SIZES.as_environment(),
            "TIDEMARK_PIPELINE": "plain",
            "TIDEMARK_STORE_NAME": NAME,
            "TIDEMARK_SLAVES_LISTEN": f"127.0.0.1:{first + 3}",
        },
        writer_remoting_port=first + 2,
        small_new_files=False,
    )
    with stack, Topics(stack.writer_address) as topics:
        topics.create("orders", queues=4)
        topics.create("batches", queues=2, attributes=BATCH_QUEUE)
        with Producer(stack.writer_address) as producer:
            send_some(producer, random.Random(0), 50)
        with RealSlave(tmp_path / "slave", tmp_path / "work", stack.writer_remoting_address, sizes=SIZES) as slave:
            source = random.Random(1)
            with (
                Producer(stack.writer_address) as producer,
                repeated(lambda: send_some(producer, source, 5), although=StoreError),
            ):
                time.sleep(5)
                slave.kill()
                time.sleep(2)
                slave.start()
                until(lambda: log_end(slave.store) > SIZES.commit_log, "the slave copies again", SYNC_S)
                stack.services.pop(WRITER).kill()
                time.sleep(1)
                stack.start_service(WRITER)
                time.sleep(5)
            topics.create("late", queues=1, attributes=BATCH_QUEUE)  # while the slave follows
            with Producer(stack.writer_address) as producer:
                send_some(producer, random.Random(2), 50)
                producer.send_batch([Message("late", b"a"), Message("late", b"b")])
            time.sleep(2)  # delayed messages of level 1 come to their topic
            end = committed(stack)
            until(lambda: log_end(slave.store) == end, "the slave has the log", SYNC_S)
            until(lambda: not compare_files(stack.data, slave.store, end).different, "queue files are equal", SYNC_S)
            compared = compare_files(stack.data, slave.store, end).bytes
            table = orjson.loads((slave.store / "config/topics.json").read_bytes())["topicConfigTable"]
            assert table["late"]["attributes"] == {"queue.type": "BatchCQ"}
    tell(capsys, f"copied by a slave: {compared:,} bytes equal, log of {end:,} bytes")


def committed(stack: LocalStack) -> int:
    """Return the committed end once everything below it is indexed."""

    def is_level() -> bool:
        return not httpx.get(f"{stack.query_url}/v1/watermark").json()["lag_bytes"]

    until(is_level, "everything is indexed", SYNC_S)
    return int(httpx.get(f"{stack.query_url}/v1/watermark").json()["committed_offset"])


def log_end(store: Path) -> int:
    """Return the end of the last byte of the log that is not zero: records end with properties, which are text."""
    for file in sorted((store / "commitlog").glob("[0-9]*"), reverse=True):
        size = len(file.read_bytes().rstrip(b"\0"))
        if size:
            return int(file.name) + size
    return 0
