"""The workloads of an asyncio client: the same as in loops.py, in one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from benchmarks.peers.python.load import BATCHING, BODY_BYTES, CONSUME, CONSUME_TABLE, LATENCY, SEND, Load
from benchmarks.peers.python.meter import Answer, Latencies, Meter, Pass
from benchmarks.peers.python.protocol import AsyncClient
from benchmarks.peers.python.timer import Timer

_BODY = bytes(BODY_BYTES)


async def run(client: AsyncClient, load: Load) -> Answer:
    """Run the workload of *load* and return its figures."""
    await client.open()
    try:
        return await _WORKLOADS[load.workload](client, load)
    finally:
        await client.close()


async def _send(client: AsyncClient, load: Load) -> Answer:
    await _call_for(load.warm_s, client.send)
    meter = Meter()
    return meter.answer(await _call_for(load.measured_s, client.send))


async def _batching(client: AsyncClient, load: Load) -> Answer:
    await _call_for(load.warm_s, client.begin)
    await client.finish()
    meter = Meter()
    count = await _call_for(load.measured_s, client.begin)
    await client.finish()
    return meter.answer(count)


async def _call_for(seconds: float, send: Callable[[bytes], Awaitable[None]]) -> int:
    count, end = 0, time.perf_counter() + seconds
    while not count or time.perf_counter() < end:
        await send(_BODY)
        count += 1
    return count


async def _consume(client: AsyncClient, load: Load) -> Answer:
    for _ in range(load.messages):
        await client.begin(_BODY)
    await client.finish()
    await _read_for(load.warm_s, client, load)
    meter = Meter()
    return meter.answer(await _read_for(load.measured_s, client, load))


async def _read_for(seconds: float, client: AsyncClient, load: Load) -> int:
    passes, end = 0, time.perf_counter() + seconds
    while not passes or time.perf_counter() < end:
        await client.rewind()
        one = Pass(load, reads_bodies=load.workload == CONSUME)
        while not one.is_over():
            one.add(await client.receive())
        passes += 1
    return passes * load.messages


async def _latency(client: AsyncClient, load: Load) -> Answer:
    latencies = Latencies(load)
    await client.rewind()
    await client.receive()  # connects

    async def read() -> None:
        while not latencies.add(await client.receive()):
            pass

    reader = asyncio.create_task(read())
    meter = await _send_when_due(client, load, latencies)
    await reader
    cpu_us = meter.answer(latencies.count - latencies.warm)["cpu_us"]
    return {**latencies.answer(), "cpu_us": cpu_us}


async def _send_when_due(client: AsyncClient, load: Load, latencies: Latencies) -> Meter:
    due = asyncio.Event()
    timer, meter, number = Timer(load.rate), Meter(), 0
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += timer.wait()  # does not block, because the loop has found it readable
        due.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(timer.fd, tick)
    while number < latencies.count:
        await due.wait()
        due.clear()
        while number < min(ticks, latencies.count):
            if number == latencies.warm:
                meter = Meter()
            await client.begin(latencies.body(number, timer.due_ns(number)))
            number += 1
        await client.push()
    loop.remove_reader(timer.fd)
    timer.close()
    await client.finish()
    return meter


_WORKLOADS: dict[str, Callable[[AsyncClient, Load], Awaitable[Answer]]] = {
    SEND: _send,
    BATCHING: _batching,
    CONSUME: _consume,
    CONSUME_TABLE: _consume,
    LATENCY: _latency,
}
