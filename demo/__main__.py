"""`python -m demo`: sends 336,776 real flights through the real services, twice, and compares every message read back.

The store is kept in data/demo; each run begins with an empty store. The exit status is 1 on any difference.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.append_to_visible import measure
from demo.append import append_flights
from demo.compare import compare_topic
from demo.flights import flights
from demo.questions import ask
from demo.screen import CONSOLE, heading
from tidemark.client import BATCH_QUEUE, Consumer, Producer, Query
from tidemark.local.local_stack import LocalStack, ServiceDiedError

DATA = Path("data/demo")
TOPICS: dict[str, dict[str, str]] = {"departures": {}, "departures-batch": BATCH_QUEUE}
SAMPLES, SAMPLE_RATE = 200, 50.0


def main() -> int:
    """Run the demo and return 0 if every message came back equal, otherwise 1."""
    began = time.perf_counter()
    shutil.rmtree(DATA, ignore_errors=True)
    stack = LocalStack(DATA)
    try:
        heading("Starting writer, pipeline and query")
        stack.start(on_step=lambda name: CONSOLE.print(f"starting {name} …"))
        CONSOLE.print(f"gRPC {stack.writer_address}   REST {stack.query_url}   docs {stack.query_url}/docs")
        differences = run(stack, flights())
        stack.check()
    except ServiceDiedError as error:
        CONSOLE.print("\n".join([error.message, *error.last_lines]), style="red", markup=False)
        return 1
    finally:
        statuses = stack.stop()
    differences += [f"{name} stopped with exit status {status}" for name, status in statuses.items() if status]
    _conclude(differences, time.perf_counter() - began)
    return 1 if differences else 0


def show_first_message(stack: LocalStack) -> None:
    """Send a message and read it, usually before Spark is up: until then the pipeline's understudy builds."""
    began = time.perf_counter()
    with Producer(stack.writer_address) as producer, Consumer("first", url=stack.query_url) as consumer:
        producer.send("first", b"hello")
        while not (messages := consumer.poll(timeout_s=1)):
            stack.check()
    builder = "Spark" if stack.spark_follows() else "the understudy, while Spark starts"
    CONSOLE.print(
        f"first message read after {time.perf_counter() - began:.2f} s: {messages[0].body!r}, indexed by {builder}"
    )


def wait_for_spark(stack: LocalStack) -> None:
    """Wait until Spark has taken over."""
    if stack.spark_follows():
        return
    began = time.perf_counter()
    with CONSOLE.status("waiting until Spark has taken over from the understudy"):
        stack.wait_for_spark()
    CONSOLE.print(f"Spark has taken over from the understudy, after a wait of {time.perf_counter() - began:.1f} s")


def run(stack: LocalStack, table: pa.Table) -> list[str]:
    """Run all steps with *table* and return the differences, one line each."""
    differences: list[str] = []
    show_first_message(stack)
    with Producer(stack.writer_address, timeout_s=60) as producer, Query(stack.query_url) as query:
        heading(f"Appending {table.num_rows:,} flights to each of {len(TOPICS)} topics")
        sent = {}
        for topic, attributes in TOPICS.items():
            sent[topic] = append_flights(producer, query, table, topic, attributes)
            wait_for_spark(stack)
        heading("Querying over REST")
        topic = next(iter(TOPICS))
        differences += ask(query, table, topic, sent[topic])
        heading("Pulling everything back")
        equal = {}
        for topic, result in sent.items():
            comparison = compare_topic(stack.query_url, table, topic, result)
            equal[topic] = comparison.equal
            differences += comparison.differences
    heading("Append → visible")
    latencies = measure(stack.writer_address, stack.query_url, count=SAMPLES, rate=SAMPLE_RATE, topic="latency")
    p50, p99 = np.percentile(latencies.visible, [50, 99])
    CONSOLE.print(f"{SAMPLES} single sends, long poll over REST: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    CONSOLE.print(f"compared: {' + '.join(f'{count:,}' for count in equal.values())} messages equal", style="bold")
    return differences


def _conclude(differences: list[str], seconds: float) -> None:
    heading("Done")
    if differences:
        CONSOLE.print(f"{len(differences):,} differences; the first: {differences[0]}", style="bold red", markup=False)
    else:
        CONSOLE.print("no differences", style="bold green")
    CONSOLE.print(
        f"{seconds:.0f} s. The store is kept in {DATA}; `tidemark serve --data {DATA}` serves it, with API docs at "
        "http://127.0.0.1:8080/docs"
    )


if __name__ == "__main__":
    sys.exit(main())
