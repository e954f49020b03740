"""A writer as the master of slaves. tests/conformance/broker/test_slaves.py has RocketMQ's own slaves."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixed_ports import fixed_ports
from tests.integration.writer.follow.fake_master import read_exactly
from tests.pipeline_runs import queue_files
from tests.waiting import until
from tidemark.client import BATCH_QUEUE, Message, Producer, Topics
from tidemark.local.local_stack import WRITER, LocalStack, ServiceDiedError
from tidemark.remoting import decode, encode
from tidemark.remoting.codes import Language, ResponseCode, SlaveCode
from tidemark.remoting.frame import Frame, request

pytestmark = pytest.mark.integration

TIMEOUT_S = 30.0
FILE_BYTES = 1 << 16
NAME = "broker-a"
_HEAD = struct.Struct(">qi")
V5_3_3, V5_4_0 = 479, 493


class Master:
    """A store whose log slaves may copy, with the ports of its writer."""

    def __init__(self, root: Path, **settings: str) -> None:
        first = fixed_ports(4)[0]  # topics are asked at the port for RocketMQ's clients minus two
        self.port, self.slaves_port = first + 2, first + 3
        self.stack = LocalStack(
            root,
            environment={
                "TIDEMARK_PIPELINE": "plain",
                "TIDEMARK_STORE_NAME": NAME,
                "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(FILE_BYTES),
                "TIDEMARK_SLAVES_LISTEN": f"127.0.0.1:{self.slaves_port}",
                **settings,
            },
            writer_remoting_port=self.port,
            small_new_files=False,
        )

    def send(self, count: int = 100, topic: str = "orders") -> None:
        with Producer(self.stack.writer_address) as producer:
            for number in range(count):
                producer.send_batch([Message(topic, bytes([number % 251]) * 1_000, keys=(f"k{number}",))] * 2)

    def send_slowly(self) -> None:
        """Append for longer than the time of a heartbeat."""
        for _ in range(60):
            self.send(1)
            time.sleep(0.1)

    def create_batches(self) -> None:
        """Create the topic `batches`, whose queue files are of batches."""
        with Topics(self.stack.writer_address) as topics:
            topics.create("batches", queues=2, attributes=BATCH_QUEUE)

    @property
    def end(self) -> int:
        return int(httpx.get(f"{self.stack.query_url}/v1/watermark").json()["committed_offset"])

    def log(self, begin: int, end: int) -> bytes:
        files = sorted((self.stack.data / "commitlog").iterdir())
        whole = b"".join(file.read_bytes() for file in files)
        return whole[begin - int(files[0].name) : end - int(files[0].name)]

    def ask(self, code: int, fields: dict[str, str] | None = None, *, port: int = 0, version: int = V5_3_3) -> Frame:
        """Return the answer to a slave's request."""
        with socket.create_connection(("127.0.0.1", port or self.port), TIMEOUT_S) as connection:
            asked = replace(request(code, fields or {}, opaque=1), language=Language.JAVA, version=version)
            connection.sendall(encode(asked))
            head = read_exactly(connection, 4)
            return decode(head + read_exactly(connection, int.from_bytes(head, "big")))


class Slave:
    """A connection to the port for slaves."""

    def __init__(self, master: Master) -> None:
        self._connection = socket.create_connection(("127.0.0.1", master.slaves_port), TIMEOUT_S)

    def report(self, offset: int) -> None:
        self._connection.sendall(struct.pack(">q", offset))

    def receive(self) -> tuple[int, bytes]:
        """Return the next frame: its offset, and its bytes of the log."""
        offset, size = _HEAD.unpack(read_exactly(self._connection, _HEAD.size))
        return offset, read_exactly(self._connection, size)

    def copy(self, begin: int, end: int) -> bytes:
        """Return the log up to *end*, whose frames must follow each other, each within one file."""
        data = b""
        while begin + len(data) < end:
            offset, part = self.receive()
            assert offset == begin + len(data)
            assert not part or offset // FILE_BYTES == (offset + len(part) - 1) // FILE_BYTES
            data += part
        return data

    def is_closed(self) -> bool:
        return self._connection.recv(1) == b""

    def __enter__(self) -> Slave:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    made = Master(tmp_path / "master")
    with made.stack:
        yield made


def test_an_empty_slave_gets_the_whole_log_and_what_follows(master: Master) -> None:
    master.send()
    with Slave(master) as slave:
        slave.report(0)
        end = master.end
        assert end > 3 * FILE_BYTES
        assert slave.copy(0, end) == master.log(0, end)
        slave.report(end)
        master.send(1)
        later = master.end
        assert slave.copy(end, later) == master.log(end, later)


def test_a_slave_continues_where_its_log_ends(master: Master) -> None:
    master.send()
    end = master.end
    for begin in (1, FILE_BYTES - 1, FILE_BYTES, end - 7):
        with Slave(master) as slave:
            slave.report(begin)
            assert slave.copy(begin, end) == master.log(begin, end)


def test_a_slave_that_is_ahead_gets_heartbeats(master: Master) -> None:
    """RocketMQ's master does the same, every five seconds."""
    with Slave(master) as slave:
        slave.report(master.end + 1_000_000)
        assert slave.receive() == (master.end + 1_000_000, b"")


def test_a_wrong_first_report_ends_the_connection(master: Master) -> None:
    with Slave(master) as slave:
        slave.report(-1)
        assert slave.is_closed()


def test_topics_of_batches_come_before_their_records(master: Master) -> None:
    """A slave that does not know such a topic builds wrong queue files. It asks once a minute."""
    master.send(1)
    with Slave(master) as slave:
        slave.report(0)
        known = master.end
        slave.copy(0, known)
        slave.report(known)
        master.create_batches()
        master.send(1, "batches")
        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(master.send_slowly)
            assert slave.receive() == (known, b""), "a heartbeat only"
            sending.result()
        end = master.end
        topics = json.loads(bytes(master.ask(SlaveCode.GET_ALL_TOPIC_CONFIG, port=master.port - 2).body))
        assert topics["topicConfigTable"]["batches"]["attributes"] == {"+queue.type": "BatchCQ"}
        assert slave.receive() == (known, b""), "the slave is at work on the answer"
        master.ask(SlaveCode.GET_ALL_CONSUMER_OFFSET)
        assert slave.copy(known, end) == master.log(known, end)
    topics = json.loads(bytes(master.ask(SlaveCode.GET_ALL_TOPIC_CONFIG, version=V5_4_0).body))
    assert topics["topicConfigTable"]["batches"]["attributes"] == BATCH_QUEUE


def test_a_deleted_topic_of_batches_is_forgotten_before_its_name_is_used_again(master: Master) -> None:
    master.create_batches()
    for code in (SlaveCode.GET_ALL_TOPIC_CONFIG, SlaveCode.GET_ALL_CONSUMER_OFFSET):
        master.ask(code)
    with Slave(master) as slave:
        slave.report(0)
        master.send(1, "batches")
        known = master.end
        slave.copy(0, known)
        slave.report(known)
        with Topics(master.stack.writer_address) as topics:
            topics.delete("batches")
            topics.create("batches", queues=2)
        master.send(1, "batches")
        assert slave.receive() == (known, b"")
        for code in (SlaveCode.GET_ALL_TOPIC_CONFIG, SlaveCode.GET_ALL_CONSUMER_OFFSET):
            master.ask(code)
        end = master.end
        assert slave.copy(known, end) == master.log(known, end)


def test_more_slaves_than_allowed_are_refused(tmp_path: Path) -> None:
    master = Master(tmp_path / "master", TIDEMARK_MAX_SLAVES="1")
    with master.stack, Slave(master) as first:
        first.report(0)
        assert first.receive() == (0, b"")
        with Slave(master) as second:
            assert second.is_closed()


def test_a_taken_port_names_the_setting(tmp_path: Path) -> None:
    master = Master(tmp_path / "master")
    with socket.create_server(("127.0.0.1", master.port - 2)), pytest.raises(ServiceDiedError) as raised:
        master.stack.start()
    assert "TIDEMARK_SLAVES_LISTEN needs" in "".join(raised.value.last_lines)


def test_a_slave_registers_at_the_writer(master: Master) -> None:
    """Its name must be the store's."""
    answer = master.ask(SlaveCode.REGISTER_BROKER, {"brokerName": NAME, "brokerId": "1"})
    assert answer.code == ResponseCode.SUCCESS
    assert answer.fields["masterAddr"] == f"127.0.0.1:{master.port}"
    assert answer.fields["haServerAddr"] == f"127.0.0.1:{master.slaves_port}"
    for fields in ({"brokerName": "other", "brokerId": "1"}, {"brokerName": NAME, "brokerId": "0"}):
        refused = master.ask(SlaveCode.REGISTER_BROKER, fields)
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert f"this is the master of {NAME}" in refused.remark


def test_offsets_of_groups_and_delays_are_told(master: Master) -> None:
    master.send(3)
    with httpx.Client(base_url=master.stack.query_url) as client:
        until(lambda: client.get("/v1/topics/orders").is_success)
        offsets = {"offsets": [{"topic": "orders", "queue_id": 0, "offset": 0}]}
        assert client.put("/v1/groups/g/offsets", json=offsets).is_success
    table: dict[str, Any] = json.loads(bytes(master.ask(SlaveCode.GET_ALL_CONSUMER_OFFSET).body))
    assert table["offsetTable"]["orders@g"]["0"] == 0
    for code in (SlaveCode.GET_ALL_DELAY_OFFSET, SlaveCode.GET_ALL_SUBSCRIPTION_GROUP_CONFIG):
        answer = master.ask(code)
        assert answer.code == ResponseCode.SUCCESS
        assert json.loads(bytes(answer.body))["dataVersion"]


def test_a_store_follows_another_one(master: Master, tmp_path: Path) -> None:
    """Tidemark's own slave: log and queue files are equal, also after a restart of the master."""
    master.create_batches()
    master.send()
    copy = tmp_path / "copy"
    environment = {"TIDEMARK_FOLLOW": f"rocketmq://127.0.0.1:{master.port}/{NAME}", "TIDEMARK_PIPELINE": "plain"}
    stack = LocalStack(
        copy, environment=environment, writer_remoting_port=0, query_remoting_port=0, small_new_files=False
    )
    with stack, httpx.Client(base_url=stack.query_url) as client:
        master.stack.services.pop(WRITER).kill()
        master.stack.start_service(WRITER)
        master.send(10, "batches")
        end = master.end

        def is_level() -> bool:
            with contextlib.suppress(httpx.HTTPError, KeyError, TypeError):
                return bool(client.get("/v1/watermark").json()["watermark"]["physical_offset"] == end)
            return False

        until(is_level)
        assert client.get("/v1/topics/batches").json()["queue_type"] == "BatchCQ"
        until(lambda: queue_files(copy) == queue_files(master.stack.data))
    names = [file.name for file in (master.stack.data / "commitlog").iterdir() if int(file.name) < end]
    for name in names:
        size = min(FILE_BYTES, end - int(name))
        ours, theirs = ((root / "commitlog" / name).read_bytes()[:size] for root in (copy, master.stack.data))
        assert ours == theirs, name
