"""Whether memory stays flat: ten minutes of appends, long polls and large pulls, measured at a tenth and at the end.

Takes as long as it says, so it runs only when it is named: `python -m benchmarks flat`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import httpx
import psutil

from benchmarks.report import Row
from benchmarks.resident import resident_bytes
from tidemark.cli.local_stack import PIPELINE, QUERY, WRITER, LocalStack
from tidemark.client import Producer
from tidemark.format.wire_batch import Element, encode_elements

DURATION_S = 600.0
_BATCHES_A_SECOND = 20
_BATCH = encode_elements([Element(bytes(1024), b"TAGS\x01A\x02")] * 100)
_TOPIC = "flat"


def run(folder: Path, scale: float) -> list[Row]:
    """2,000 messages of 1 KiB a second, one consumer of JSON and one of raw records."""
    seconds = DURATION_S * scale
    environment = {"TIDEMARK_EPOCH_MS": "5000"}
    with LocalStack(folder / "flat", environment=environment) as stack:
        stopping = threading.Event()
        threads = [threading.Thread(target=_append, args=(stack.writer_address, stopping))]
        threads += [
            threading.Thread(target=_consume, args=(stack.query_url, accept, stopping))
            for accept in ("application/json", "application/octet-stream")
        ]
        for thread in threads:
            thread.start()
        try:
            time.sleep(seconds / 10)
            early = _memory(stack)
            time.sleep(seconds * 9 / 10)
            late = _memory(stack)
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
    note = f"after {seconds / 10:.0f} s, then after {seconds:.0f} s: + {{:.1f}} MB"
    return [
        Row(
            f"flat memory, {name}",
            late[name] / 1e6,
            "MB",
            "< 300" if name in {WRITER, QUERY} else "",
            note.format((late[name] - early.get(name, 0)) / 1e6),
        )
        for name in late
    ]


def _memory(stack: LocalStack) -> dict[str, int]:
    """RssAnon + RssShmem of each service; of the pipeline's children the greatest of each kind."""
    memory = {name: resident_bytes(stack.services[name].pid) for name in (WRITER, QUERY)}
    for child in psutil.Process(stack.services[PIPELINE].pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):  # ended meanwhile
            kind = "JVM" if child.name() == "java" else "Python worker"
            memory[kind] = max(memory.get(kind, 0), resident_bytes(child.pid))
    return memory


def _append(address: str, stopping: threading.Event) -> None:
    with Producer(address, timeout_s=30) as producer:
        while not stopping.wait(1 / _BATCHES_A_SECOND):
            producer.send_packed_async(_TOPIC, _BATCH, queue_id=0).result()


def _consume(url: str, accept: str, stopping: threading.Event) -> None:
    offset = 0
    with httpx.Client(base_url=url, headers={"accept": accept}, timeout=60) as client:
        while not stopping.is_set():
            arguments = {"offset": offset, "wait_ms": 500, "max_messages": 4096, "max_bytes": 4 << 20}
            answer = client.get(f"/v1/topics/{_TOPIC}/queues/0/messages", params=arguments)
            if answer.status_code == httpx.codes.NOT_FOUND:  # nothing has been appended yet
                continue
            is_json = accept.endswith("json")
            offset = answer.json()["next_offset"] if is_json else int(answer.headers["tidemark-next-offset"])
