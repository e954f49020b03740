"""Stores for reading benchmarks: a log of large batches with its queues, made once and shared by later benchmarks."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.indexing import index_once
from benchmarks.producers import PRODUCERS, Load, append
from benchmarks.stack import running
from tidemark.client import Producer
from tidemark.local.local_stack import WRITER

RECORD_OVERHEAD = 150  # approximate bytes of a record besides its body: head, hosts, a short topic, UNIQ_KEY
LARGE_BATCH = 1000  # messages of 1 KiB


def batches_for(log_bytes: float, *, messages: int, body_bytes: int, producers: int = PRODUCERS) -> int:
    """Return the number of batches per producer for a log of about *log_bytes*."""
    return max(1, round(log_bytes / ((body_bytes + RECORD_OVERHEAD) * messages * producers)))


def append_log(
    data: Path, load: Load, *, attributes: dict[str, str] | None = None, settings: Mapping[str, str] | None = None
) -> None:
    """Append *load* to the new or stopped store at *data* as fast as possible, without indexing it."""
    with running(data, WRITER, flush_mode="async", settings=settings) as stack:
        with Producer(stack.writer_address) as producer:
            producer.topics.create(load.topic, queues=PRODUCERS, attributes=attributes)
        append(stack.writer_address, load._replace(ahead=False))


def shared_store(data: Path, load: Load, *, attributes: dict[str, str] | None = None) -> Path:
    """Return the store at *data* with *load*, indexed; create it if it does not exist."""
    if not data.exists():
        making = data.with_name(f"{data.name}.making")
        shutil.rmtree(making, ignore_errors=True)
        append_log(making, load, attributes=attributes)
        index_once(making)
        making.rename(data)
    return data


@contextlib.contextmanager
def passing_store(data: Path) -> Iterator[Path]:
    """Yield *data*, without a store, for the store of one benchmark, and delete the store afterwards."""
    shutil.rmtree(data, ignore_errors=True)
    try:
        yield data
    finally:
        shutil.rmtree(data, ignore_errors=True)
