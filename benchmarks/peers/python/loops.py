"""The workloads of a client with ordinary calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from benchmarks.peers.python.load import BATCHING, BODY_BYTES, CONSUME, CONSUME_TABLE, LATENCY, SEND, Load
from benchmarks.peers.python.meter import Answer, Latencies, Meter, Pass
from benchmarks.peers.python.protocol import Client
from benchmarks.peers.python.timer import Timer

_BODY = bytes(BODY_BYTES)


def run(client: Client, load: Load) -> Answer:
    """Run the workload of *load* and return its figures."""
    return _WORKLOADS[load.workload](client, load)


def _send(client: Client, load: Load) -> Answer:
    _call_for(load.warm_s, client.send)
    meter = Meter()
    return meter.answer(_call_for(load.measured_s, client.send))


def _batching(client: Client, load: Load) -> Answer:
    _call_for(load.warm_s, client.begin)
    client.finish()
    meter = Meter()
    count = _call_for(load.measured_s, client.begin)
    client.finish()
    return meter.answer(count)


def _call_for(seconds: float, send: Callable[[bytes], None]) -> int:
    """Send until the time is over; return the number of messages."""
    count, end = 0, time.perf_counter() + seconds
    while not count or time.perf_counter() < end:
        send(_BODY)
        count += 1
    return count


def _consume(client: Client, load: Load) -> Answer:
    for _ in range(load.messages):
        client.begin(_BODY)
    client.finish()
    _read_for(load.warm_s, client, load)
    meter = Meter()
    return meter.answer(_read_for(load.measured_s, client, load))


def _read_for(seconds: float, client: Client, load: Load) -> int:
    """Read whole passes until the time is over; return the number of messages."""
    passes, end = 0, time.perf_counter() + seconds
    while not passes or time.perf_counter() < end:
        client.rewind()
        one = Pass(load, reads_bodies=load.workload == CONSUME)
        while not one.is_over():
            one.add(client.receive())
        passes += 1
    return passes * load.messages


def _latency(client: Client, load: Load) -> Answer:
    latencies = Latencies(load)
    failures: list[BaseException] = []
    client.rewind()
    client.receive()  # connects

    def read() -> None:
        try:
            while not latencies.add(client.receive()):
                pass
        except BaseException as failure:
            failures.append(failure)

    reader = threading.Thread(target=read)
    reader.start()
    meter = _send_when_due(client, load, latencies)
    reader.join()
    cpu_us = meter.answer(latencies.count - latencies.warm)["cpu_us"]
    for failure in failures:
        raise failure
    return {**latencies.answer(), "cpu_us": cpu_us}


def _send_when_due(client: Client, load: Load, latencies: Latencies) -> Meter:
    """Send all messages; return a meter that was started with the first message that counts."""
    timer, meter, number = Timer(load.rate), Meter(), 0
    while number < latencies.count:
        for _ in range(min(timer.wait(), latencies.count - number)):
            if number == latencies.warm:
                meter = Meter()
            client.begin(latencies.body(number, timer.due_ns(number)))
            number += 1
        client.push()
    timer.close()
    client.finish()
    return meter


_WORKLOADS: dict[str, Callable[[Client, Load], Answer]] = {
    SEND: _send,
    BATCHING: _batching,
    CONSUME: _consume,
    CONSUME_TABLE: _consume,
    LATENCY: _latency,
}
