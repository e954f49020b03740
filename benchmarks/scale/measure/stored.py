"""Creates a store with messages of known sizes with the real writer and pipeline, and measures its bytes on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.indexing import ONCE, index_once
from benchmarks.producers import TIMEOUT_S, require_stored
from benchmarks.scale import sizes
from benchmarks.scale.workload import Workload
from benchmarks.stack import running
from tidemark.client import BATCH_QUEUE, Producer
from tidemark.format.elements import Element, encode_elements
from tidemark.format.index_file import decode_header
from tidemark.format.index_layout import HEADER_SIZE
from tidemark.format.properties import KEYS, UNIQ_KEY, encode_properties
from tidemark.index.key_index import index_files
from tidemark.local.local_stack import WRITER
from tidemark.read.store_reader import StoreReader


class Stored(NamedTuple):
    """The bytes and entries of one store. Bytes do not include the unused ends of files."""

    log_bytes: float
    queue_bytes: float
    queue_files: int
    index_entries: int
    index_files: int


def predict(workload: Workload, batches: int, files: sizes.Files) -> Stored:
    """Return the model's prediction for this many batches."""
    messages = batches * workload.batch
    return Stored(
        sizes.log_bytes(workload, messages),
        sizes.queue_bytes(workload, messages),
        sizes.queue_files(workload, messages, queues=workload.queues, files=files),
        round(sizes.index_entries(workload, messages)),
        sizes.index_files(workload, messages, files),
    )


def make(data: Path, workload: Workload, batches: int, files: sizes.Files) -> None:
    """Append this many batches, in turn to each queue of one topic, and index them."""
    settings = settings_of(files)
    topic = "t" * workload.topic_bytes
    with running(data, WRITER, settings=settings) as stack, Producer(stack.writer_address, timeout_s=TIMEOUT_S) as to:
        to.topics.create(topic, queues=workload.queues, attributes=BATCH_QUEUE if workload.batch_queues else None)
        sent = [
            to.send_packed_async(
                topic, batch_of(workload, number), count=workload.batch, queue_id=number % workload.queues
            )
            for number in range(batches)
        ]
        for future in sent:
            require_stored(future.result())
    index_once(data, *ONCE, "--pipeline", "plain", settings=settings)


def settings_of(files: sizes.Files) -> Mapping[str, str]:
    """Return the settings with which services create files of these sizes."""
    return {
        "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(files.segment_bytes),
        "TIDEMARK_CONSUME_QUEUE_FILE_SIZE_BYTES": str(files.queue_file_bytes),
        "TIDEMARK_BATCH_CONSUME_QUEUE_FILE_SIZE_BYTES": str(files.batch_queue_file_bytes),
        "TIDEMARK_INDEX_SLOTS": str(files.index_slots),
        "TIDEMARK_INDEX_ENTRIES": str(files.index_entries),
    }


def batch_of(workload: Workload, number: int) -> bytes:
    """Return the wire batch with this number; its keys are unique."""
    body = b"b" * workload.body_bytes
    first = number * workload.batch
    return encode_elements(Element(body, _properties(workload, first + each)) for each in range(workload.batch))


def _properties(workload: Workload, number: int) -> bytes:
    keys = [f"{number:0{workload.key_bytes - 2}d}-{key}" for key in range(workload.keys)]
    own = {KEYS: " ".join(keys)} if keys else {}
    return encode_properties({**own, UNIQ_KEY: f"{number:0{sizes.UNIQUE_KEY_BYTES}d}"})


def look(data: Path, workload: Workload) -> Stored:
    """Return the measured bytes and entries of the store at *data*."""
    reader = StoreReader(data)
    topic = "t" * workload.topic_bytes
    runs = [queue.run for queue in reader.queues(topic)]
    watermark = reader.watermark()
    units = sum(run.visible(watermark, log_min=0).end * run.unit_size for run in runs)
    headers = []
    for path in index_files(data / "index"):
        with path.open("rb") as file:
            headers.append(decode_header(file.read(HEADER_SIZE)))
    return Stored(
        watermark.physical_offset,
        units,
        sum(len(run.file_starts()) for run in runs),
        sum(header.index_count - 1 for header in headers),
        len(headers),
    )
