"""`tidemark follow` as a slave of a real broker under load, through kills of either side: equal logs, queues, messages.

At the end the copy becomes a store of its own, which appends after the broker's last message.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.waiting import until
from tidemark.client.producer.producer import Producer
from tidemark.local.local_stack import LocalStack

from .attached_sender import QUEUES, Sender
from .file_sizes import FileSizes
from .real_broker import RealBroker
from .repeated import repeated
from .rocket_client import RocketError
from .same_files import compare_files
from .test_attached import create_topics, ours_as_theirs, tell, theirs, whole_queue

pytestmark = [pytest.mark.conformance, pytest.mark.exhaustive]

SIZES = FileSizes(
    commit_log=1 << 18, consume_queue=4_000, batch_consume_queue=4_600, index_slots=100, index_entries=400
)
SETTINGS: list[dict[str, object]] = [
    {"flushDiskType": "ASYNC_FLUSH"},
    {"flushDiskType": "SYNC_FLUSH", "brokerRole": "SYNC_MASTER", "inSyncReplicas": 2, "slaveTimeout": 20_000},
]


def environment_of(broker: RealBroker) -> dict[str, str]:
    sizes = SIZES.as_environment()
    del sizes["TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES"]  # taken from the broker
    return {
        **sizes,
        "TIDEMARK_FOLLOW": f"rocketmq://{broker.name_server_address}/broker-a",
        "TIDEMARK_PIPELINE": "plain",
    }


def status(stack: LocalStack) -> dict[str, Any]:
    answer: dict[str, Any] = httpx.get(f"{stack.query_url}/v1/status").json()
    return answer


@pytest.mark.parametrize("seed", range(len(SETTINGS)))
def test_a_copy_follows_a_broker_through_kills_of_both(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    store, copy = tmp_path / "store", tmp_path / "copy"
    with RealBroker(store, tmp_path / "work", sizes=SIZES, settings={"flushDiskType": "ASYNC_FLUSH"}) as broker:
        create_topics(broker)
        sender = Sender(broker.client, seed)
        sender.send_some(100)
        settings = environment_of(broker)
        stack = LocalStack(copy, environment=settings, writer_remoting_port=0, small_new_files=False)
        with stack:
            broker.stop()
            broker.start(settings=SETTINGS[seed])
            broker.client.wait_until_known("orders")
            with repeated(lambda: sender.send_some(5), although=RocketError):
                time.sleep(3)
                stack.services.pop("writer").kill()
                time.sleep(2)
                stack.start_service("writer")
                time.sleep(3)
                broker.kill()
                time.sleep(1)
                broker.start()
                time.sleep(5)
            broker.client.wait_until_known("orders")
            broker.client.create_topic("late", queues=1, batch=True)  # after the copy began
            sender.send_some(50)
            time.sleep(2)  # delayed messages of level 1 come to their topic
            end = broker_end(stack)
            count = require_messages(broker, stack, sender)
            assert httpx.get(f"{stack.query_url}/v1/corruptions").json()["total"] == 0
            compared = compare_files(broker.store, copy, end)
            assert not compared.different
    tell(capsys, f"followed, seed {seed}: {count} messages, {compared.bytes:,} bytes equal, log of {end:,} bytes")
    append_to_copy(copy)


def broker_end(stack: LocalStack) -> int:
    """Wait until the copy has everything that the broker has now; return the end of the log."""
    since_ms = time.time() * 1000
    until(lambda: is_level(stack, since_ms), "the copy has the broker's log")
    return int(status(stack)["watermark"]["physical_offset"])


def is_level(stack: LocalStack, since_ms: float) -> bool:
    state = status(stack)
    followed = state["follow"]
    is_fresh = followed["is_connected"] and followed["at_ms"] > since_ms
    return bool(is_fresh and followed["behind_bytes"] == 0 and state["lag_bytes"] == 0)


def require_messages(broker: RealBroker, stack: LocalStack, sender: Sender) -> int:
    """Compare every message with the broker's client and with the acknowledged ones; return the count."""
    count = 0
    with httpx.Client(base_url=stack.query_url, timeout=60) as client:
        for topic in QUEUES:
            for queue in broker.client.queues(topic):
                mine = [ours_as_theirs(message) for message in whole_queue(client, topic, queue)]
                assert mine == [theirs(message) for message in broker.client.read_queue(topic, queue)]
                by_offset = {message["queue_offset"]: message["body"] for message in mine}
                for offset, body in sender.sent.get((topic, queue["queue_id"]), []):
                    assert by_offset[offset] == body
                count += len(mine)
    return count


def append_to_copy(copy: Path) -> None:
    """The copy becomes a store of its own, which appends after the broker's last message."""
    with (
        LocalStack(copy, environment={"TIDEMARK_PIPELINE": "plain"}) as stack,
        httpx.Client(base_url=stack.query_url, timeout=60) as client,
        Producer(stack.writer_address) as producer,
    ):
        before = client.get("/v1/topics/orders/queues/0").json()["max_offset"]
        assert producer.send("orders", b"the first of its own", queue_id=0).queue_offset == before
        assert client.get("/v1/status").json()["follow"] is None
