"""Batch from Parquet: send a file's rows as messages, part by part, and read them back as tables.

Each row becomes a JSON object in a message, without a Python object for each row.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.client import Consumer, Producer

TOPIC = "trips"
ROWS = 100_000
CITIES = ["Lyon", "Oslo", "Porto"]


def main() -> None:
    """Send all rows, read them back, and check the number of rows of each city."""
    with TemporaryDirectory() as folder, Producer() as producer:
        path = Path(folder) / "trips.parquet"
        write_file(path)
        producer.topics.create(TOPIC)
        with Consumer(TOPIC, start="latest", max_messages=10_000) as consumer:
            consumer.poll_table(0)  # fixes the start position before the first row is sent
            begun = time.perf_counter()
            send_file(producer, path)
            print(f"{ROWS:,} rows acknowledged after {time.perf_counter() - begun:.2f} s")
            table = read_rows(consumer, ROWS)
    counts = {entry["values"]: entry["counts"] for entry in table["tag"].value_counts().to_pylist()}
    print(f"{table.num_rows:,} rows read: {counts}")
    assert counts == {city: len(range(first, ROWS, len(CITIES))) for first, city in enumerate(CITIES)}


def write_file(path: Path) -> None:
    """Write trips with alternating cities to a Parquet file."""
    numbers = np.arange(ROWS)
    cities = pa.array(CITIES).take(pa.array(numbers % len(CITIES)))
    fares = np.random.default_rng(1).gamma(2, 5, ROWS).round(2)
    trip_ids = pa.array(numbers).cast(pa.string())
    pq.write_table(pa.table({"trip_id": trip_ids, "city": cities, "fare": fares}), path, row_group_size=50_000)


def send_file(producer: Producer, path: Path) -> None:
    """Send the file part by part, to bound the memory; each part is acknowledged before the next one is read."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=50_000):
            producer.send_table(pa.Table.from_batches([batch]), TOPIC, key="trip_id", tag="city")


def read_rows(consumer: Consumer, rows: int) -> pa.Table:
    """Read the next *rows* messages."""
    tables: list[pa.Table] = []
    while sum(table.num_rows for table in tables) < rows:
        table = consumer.poll_table(30)
        if table is None:
            raise TimeoutError(f"no message arrived within 30 s; {sum(map(len, tables)):,} of {rows:,} were read")
        tables.append(table)
    return pa.concat_tables(tables)


if __name__ == "__main__":
    main()
