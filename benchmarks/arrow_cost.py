"""`python -m benchmarks.arrow_cost FOLDER [SCALE]`: processor time per message of pulls, beside that of a bare uvicorn.

In each round one consumer pulls messages of 1 KiB in each form, and then takes as many bytes for each message from a
server that does nothing else: out of memory, and out of a file whose bytes it reads and checks by a CRC. The service
time divided by that of a bare server is the form's cost above the floor. FOLDER keeps the store for later runs.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.bare_server import BareServer, bare_server
from benchmarks.clients import Start, run_clients
from benchmarks.processes import cpu_s
from benchmarks.producers import PRODUCERS, Load
from benchmarks.pulls import ANSWER_BYTES, ANSWER_MESSAGES, Form, Place, Puller
from benchmarks.stack import running
from benchmarks.stores import batches_for, shared_store
from tidemark.client import Query
from tidemark.client.rest.connections import Connections
from tidemark.client.rest.page import ARROW
from tidemark.local.local_stack import QUERY

_TOPIC, _MESSAGES, _BODY_BYTES, _LOG_BYTES = "bench", 100, 1024, 1.5e9
_SECONDS, _WARM_UP_S, _ROUNDS = 3.0, 1.0, 5
_FORMS = (Form.ARROW, Form.CLIENT_ARROW, Form.SERVICE_CHECKED_RECORDS, Form.CHECKED_RECORDS, Form.RECORDS)


class Cost(NamedTuple):
    """Microseconds of processor time per message, and messages per second."""

    service_us: float
    client_us: float
    rate: float


class _Answer(NamedTuple):
    size: int  # bytes
    messages: int


def main(folder: Path, scale: float) -> None:
    """Measure in rounds, and print the median of each form."""
    batches = batches_for(_LOG_BYTES * scale, messages=_MESSAGES, body_bytes=_BODY_BYTES)
    data = shared_store(
        folder / f"arrow-cost-{scale:g}", Load(_TOPIC, _MESSAGES, _BODY_BYTES, batches, unique_keys=True)
    )
    (log, *_) = sorted((data / "commitlog").iterdir())
    costs: dict[str, list[Cost]] = {}
    with contextlib.ExitStack() as servers:
        stack = servers.enter_context(running(data, QUERY))
        answer = _arrow_answer(stack.query_url)
        memory = servers.enter_context(bare_server("benchmarks.bare_http", str(answer.size)))
        file = servers.enter_context(bare_server("benchmarks.bare_http", str(answer.size), str(log)))
        clients: dict[str, Callable[[Start], Cost]] = {
            form.name: partial(_pull, Place(stack.query_url, _TOPIC, PRODUCERS, form), stack.services[QUERY].pid)
            for form in _FORMS
        }
        clients |= {"bare, from memory": partial(_take, memory, answer.messages)}
        clients |= {"bare, read and CRC": partial(_take, file, answer.messages)}
        for _ in range(_ROUNDS):
            for name, client in clients.items():
                costs.setdefault(name, []).extend(run_clients([client]))
    for name, runs in costs.items():
        service_us, client_us, rate = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"{name:18}  service {service_us:.3f} µs  client {client_us:.3f} µs  {rate:,.0f} messages/s")


def _arrow_answer(url: str) -> _Answer:
    with Query(url) as query:
        limits = {"offset": 0, "max_bytes": ANSWER_BYTES, "max_messages": ANSWER_MESSAGES}
        answer = query.answer(f"/v1/topics/{_TOPIC}/queues/0/messages", ARROW, limits)
        return _Answer(len(answer.body), int(answer.headers["Tidemark-Message-Count"]))


def _pull(place: Place, service_pid: int, start: Start) -> Cost:
    with Query(place.url) as query:
        puller = Puller(query, place)

        def pull(queue_id: int, end: float) -> int:
            return sum(messages for _, messages, _ in puller.pull_until(queue_id, end))

        return _measure(pull, service_pid, start)


def _take(server: BareServer, messages: int, start: Start) -> Cost:
    """Take answers as `_pull` does: each thread has a request under way while it reads an answer."""
    connections = Connections(f"http://{server.address}", timeout_s=60)

    def take(_: int, end: float) -> int:
        taken, following = 1, connections.ask("/", {}, "*/*")
        while time.perf_counter() < end:
            asked, following = following, connections.ask("/", {}, "*/*")
            asked.answer()
            taken += 1
        following.answer()
        return taken * messages

    return _measure(take, server.pid, start)


def _measure(work: Callable[[int, float], int], service_pid: int, start: Start) -> Cost:
    """Call *work* with each queue and the time of the end, in a thread each; it returns the number of messages."""
    service = psutil.Process(service_pid)

    def run(seconds: float) -> int:
        end = time.perf_counter() + seconds
        return sum(pool.map(work, range(PRODUCERS), [end] * PRODUCERS))

    with ThreadPoolExecutor(PRODUCERS) as pool:
        run(_WARM_UP_S)
        start()
        began, service_s, client_s = time.perf_counter(), cpu_s(service), time.process_time()
        messages = run(_SECONDS)
        took_s = time.perf_counter() - began
        service_s, client_s = cpu_s(service) - service_s, time.process_time() - client_s
    return Cost(service_s / messages * 1e6, client_s / messages * 1e6, messages / took_s)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.3)
