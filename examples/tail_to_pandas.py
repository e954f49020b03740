"""Tail to pandas: follow a topic as a series of DataFrames, and keep a running mean of each sensor."""

from __future__ import annotations

import random
import threading

import orjson
import pandas as pd

from tidemark.client import Consumer, Producer

TOPIC = "temperatures"
SENSORS = ["cellar", "kitchen", "roof"]
MESSAGES = 300


def main() -> None:
    """Send measurements in another thread and follow them in this one."""
    with Producer() as producer, Consumer(TOPIC, start="latest") as consumer:
        producer.topics.create(TOPIC)
        consumer.poll_table(0)  # fixes the start position before the first measurement is sent
        station = threading.Thread(target=measure, args=(producer,))
        station.start()
        follow(consumer)
        station.join()


def measure(producer: Producer) -> None:
    """Send a measurement every millisecond."""
    pause = threading.Event()
    for number in range(MESSAGES):
        sensor = SENSORS[number % len(SENSORS)]
        body = orjson.dumps({"sensor": sensor, "celsius": round(random.gauss(15, 4), 2)})
        producer.send_async(TOPIC, body, key=sensor)
        pause.wait(0.001)


def follow(consumer: Consumer) -> None:
    """Print the means until all measurements have arrived."""
    seen = pd.DataFrame({"sensor": [], "celsius": []})
    while len(seen) < MESSAGES:
        table = consumer.poll_table(30)
        if table is None:
            raise TimeoutError(f"no measurement arrived within 30 s; {len(seen)} of {MESSAGES} were read")
        rows = pd.DataFrame([orjson.loads(body) for body in table["body"].to_pylist()])
        seen = pd.concat([seen, rows]) if len(seen) else rows
        means = seen.groupby("sensor").celsius.mean().round(2)
        print(f"{len(seen):4} measurements, mean by sensor: {means.to_dict()}")


if __name__ == "__main__":
    main()
