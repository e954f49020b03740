"""Graceful worker: SIGTERM lets the running handlers end and commits their messages; nothing is handled twice.

A service manager (systemd, Docker, Kubernetes) stops a process with SIGTERM. One worker uses threads, one asyncio.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
import uuid

from tidemark.client import AsyncConsumer, Consumer, Producer, ReceivedMessage

TOPIC = f"jobs-{uuid.uuid4().hex[:8]}"
GROUP = "graceful"
JOBS = 60


def work(topic: str) -> None:
    """Handle jobs in four threads until SIGTERM or Ctrl-C."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def handle(message: ReceivedMessage) -> None:
        time.sleep(0.05)  # the work
        print(f"{message.text()}\n", end="", flush=True)  # one write: threads may mix several

    with Consumer(topic, group=GROUP) as consumer:
        consumer.consume(handle, workers=4, stop=stop)


async def work_async(topic: str) -> None:
    """Handle jobs in four tasks until SIGTERM or Ctrl-C."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    async def handle(message: ReceivedMessage) -> None:
        await asyncio.sleep(0.05)  # the work
        print(message.text(), flush=True)

    async with AsyncConsumer(topic, group=GROUP) as consumer:
        await consumer.consume(handle, workers=4, stop=stop)


def run_until_terminated(kind: str, jobs: int) -> list[str]:
    """Start a worker, send it SIGTERM after some *jobs*, and return all that it handled."""
    command = [sys.executable, __file__, kind, TOPIC]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        handled = [worker.stdout.readline().strip() for _ in range(jobs)]
        worker.send_signal(signal.SIGTERM)
        handled += worker.stdout.read().split()
    print(f"worker with {kind}: {len(handled)} jobs, exit status {worker.returncode}")
    assert worker.returncode == 0
    return handled


def main() -> None:
    """Stop a worker of each kind in its work, and require that each job was handled once."""
    with Producer() as producer:
        for number in range(JOBS):
            producer.send(TOPIC, str(number))
    handled = run_until_terminated("threads", JOBS // 3)
    assert len(handled) < JOBS
    handled += run_until_terminated("asyncio", JOBS - len(handled))
    assert sorted(handled, key=int) == [str(number) for number in range(JOBS)]
    print(f"all {JOBS} jobs were handled once")


if __name__ == "__main__":
    if sys.argv[1:2] == ["threads"]:
        work(sys.argv[2])
    elif sys.argv[1:2] == ["asyncio"]:
        asyncio.run(work_async(sys.argv[2]))
    else:
        main()
