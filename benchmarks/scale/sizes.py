"""Computes the exact bytes and files of a store from the tables of the format."""

from __future__ import annotations

import math
from typing import NamedTuple

from benchmarks.scale.workload import Workload
from services.indexer.pipeline.config import PipelineSettings
from services.writer.config import WriterSettings
from tidemark.format import batch_consume_queue, consume_queue, index_file
from tidemark.format.elements import ELEMENT_OVERHEAD
from tidemark.format.host import IPV4_HOST_SIZE
from tidemark.format.message_id import UniqueKeys
from tidemark.format.properties import INNER_BASE, INNER_NUM, KEYS, UNIQ_KEY, encode_properties
from tidemark.format.record import Magic, record_size

UNIQUE_KEY_BYTES = len(UniqueKeys().make())
_WRITER, _PIPELINE = WriterSettings.model_fields, PipelineSettings.model_fields
_OFFSET_DIGITS = 10  # digits of INNER_BASE, for a queue with up to ten thousand million messages


class Files(NamedTuple):
    """Sizes of a store's files, by default those of the services. index_entries: per file."""

    segment_bytes: int = _WRITER["commit_log_segment_size_bytes"].default
    queue_file_bytes: int = _PIPELINE["consume_queue_file_size_bytes"].default
    batch_queue_file_bytes: int = _PIPELINE["batch_consume_queue_file_size_bytes"].default
    index_slots: int = index_file.DEFAULT_SLOTS
    index_entries: int = index_file.DEFAULT_ENTRIES


DEFAULT_FILES = Files()


def properties_bytes(workload: Workload) -> int:
    """Return the bytes of a message's properties: its keys and its UNIQ_KEY."""
    keys = {KEYS: " ".join(["k" * workload.key_bytes] * workload.keys)} if workload.keys else {}
    return len(encode_properties({**keys, UNIQ_KEY: "u" * UNIQUE_KEY_BYTES}))


def record_bytes(workload: Workload) -> int:
    """Return the bytes of a record: of a message, or of a batch on a BatchCQ topic."""
    body, properties = workload.body_bytes, properties_bytes(workload)
    if workload.batch_queues:
        body = workload.batch * (ELEMENT_OVERHEAD + body + properties)
        own = {INNER_NUM: str(workload.batch), INNER_BASE: "9" * _OFFSET_DIGITS, UNIQ_KEY: "u" * UNIQUE_KEY_BYTES}
        properties = len(encode_properties(own))
    return record_size(
        born_size=IPV4_HOST_SIZE,
        store_size=IPV4_HOST_SIZE,
        magic=Magic.V1,
        body_length=body,
        topic_length=workload.topic_bytes,
        properties_length=properties,
    )


def records(workload: Workload, messages: float) -> float:
    """Return the number of records for *messages*."""
    return messages / workload.batch if workload.batch_queues else messages


def log_bytes(workload: Workload, messages: float) -> float:
    """Return the bytes of the records of *messages*, without the unused ends of files, each less than a batch."""
    return records(workload, messages) * record_bytes(workload)


def unit_bytes(workload: Workload) -> int:
    """Return the bytes of a record's unit in its queue."""
    return batch_consume_queue.UNIT_SIZE if workload.batch_queues else consume_queue.UNIT_SIZE


def queue_bytes(workload: Workload, messages: float) -> float:
    """Return the bytes of the units of all queues."""
    return records(workload, messages) * unit_bytes(workload)


def queue_files(workload: Workload, messages: float, *, queues: int, files: Files = DEFAULT_FILES) -> int:
    """Return the number of files of *queues* that share *messages* evenly."""
    size = files.batch_queue_file_bytes if workload.batch_queues else files.queue_file_bytes
    units_a_file = size // unit_bytes(workload)
    return queues * max(1, math.ceil(records(workload, messages) / queues / units_a_file))


def index_entries(workload: Workload, messages: float) -> float:
    """Return the number of index entries: one per key of a record; a batch has only its UNIQ_KEY."""
    return records(workload, messages) * (1 if workload.batch_queues else 1 + workload.keys)


def index_files(workload: Workload, messages: float, files: Files = DEFAULT_FILES) -> int:
    """Return the number of index files. Entry 0 of a file is never used."""
    return math.ceil(index_entries(workload, messages) / (files.index_entries - 1))


def index_bytes(workload: Workload, messages: float, files: Files = DEFAULT_FILES) -> float:
    """Return the bytes of the index files at their full size."""
    return index_files(workload, messages, files) * index_file.file_size(files.index_slots, files.index_entries)


def stored_bytes(workload: Workload, messages: float) -> float:
    """Return the bytes on disk of log, queues and key index."""
    return log_bytes(workload, messages) + queue_bytes(workload, messages) + index_bytes(workload, messages)
