"""RocketMQ's Java client on Tidemark: the load program that runs on the broker, with the same settings."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.peers.figures import Figure, OurRun
from benchmarks.peers.peer import Flush, begin_program
from benchmarks.peers.toolchain import ROCKETMQ, load_programs, make_toolchain
from benchmarks.peers.work.append import QUEUES, TOPIC, send_rate, send_settings
from benchmarks.stack import running
from tidemark.client import Producer


def _send(key: str, flush: Flush, folder: Path, scale: float) -> list[Figure]:
    """Return messages per second, with one message in flight per thread."""
    toolchain = make_toolchain(ROCKETMQ, load_programs(ROCKETMQ))
    with running(folder / "data", flush_mode=flush.value) as stack:
        with Producer(stack.writer_address) as producer:
            producer.topics.create(TOPIC, queues=QUEUES)
        properties = {"server": stack.writer_remoting_address, "user.home": folder.absolute()}
        with begin_program(toolchain, "Send", {**properties, **send_settings(scale)}, folder) as program:
            return [send_rate(key, program.answer())]


SAME_CLIENT = {
    key: OurRun((key,), partial(_send, key, flush))
    for key, flush in (("send_single_java_sync", Flush.SYNC), ("send_single_java_async", Flush.ASYNC))
}
