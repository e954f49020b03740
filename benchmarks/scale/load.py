"""The share of a workload on one of several pairs in its busiest minute, and the cost of that share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.scale import sizes
from benchmarks.scale.constants import Constants
from benchmarks.scale.workload import Workload
from services.indexer.pipeline.config import PipelineSettings
from services.writer.config import WriterSettings
from tidemark.format.index_file import DEFAULT_SLOTS
from tidemark.format.index_layout import ENTRY_SIZE, SLOT_SIZE
from tidemark.store.batch_journal import ENTRY_SIZE as JOURNAL_ENTRY_BYTES

PAGE_BYTES = 4096
_ANSWER_BYTES = 1 << 20
DURABLE_INTERVAL_S: float = PipelineSettings.model_fields["durable_interval_ms"].default / 1000
IN_FLIGHT_BYTES: int = WriterSettings.model_fields["max_in_flight_bytes"].default


@dataclass(frozen=True)
class Load:
    """The load of one pair. Rates are those of the busiest second; queues: of this pair."""

    messages_a_s: float
    batches_a_s: float
    records_a_s: float
    bytes_a_s: float  # of the log
    keys_a_s: float  # entries of the key index
    queues: int
    is_inner: bool

    @classmethod
    def of(cls, workload: Workload, pairs: int = 1) -> Load:
        """Return an equal share of *workload*."""
        rate = workload.messages_a_second / pairs
        return cls(
            messages_a_s=rate,
            batches_a_s=rate / workload.batch,
            records_a_s=sizes.records(workload, rate),
            bytes_a_s=sizes.log_bytes(workload, rate),
            keys_a_s=sizes.index_entries(workload, rate),
            queues=math.ceil(workload.queues / pairs),
            is_inner=workload.batch_queues,
        )


def writer_cores(load: Load, constants: Constants) -> float:
    """Return the cores that the writer's process uses."""
    a_message = constants.writer_s_an_inner_message if load.is_inner else constants.writer_s_a_message
    return (
        load.batches_a_s * constants.writer_s_a_batch
        + load.messages_a_s * a_message
        + load.bytes_a_s * constants.writer_s_a_byte
    )


def task_cores(load: Load, constants: Constants, shards: int) -> tuple[float, float]:
    """Return the cores of a task that builds queues and of the task that builds the key index.

    With one shard they are one task. Otherwise each task walks the whole log and builds only its own queues.
    """
    walk = load.records_a_s * constants.walk_s_a_record + load.bytes_a_s * constants.walk_s_a_byte
    queues = load.records_a_s * constants.queues_s_a_record + load.bytes_a_s * constants.queues_s_a_byte
    index = load.keys_a_s * constants.index_s_a_key
    if shards == 1:
        return queues + index, 0.0
    return walk + max(0.0, queues - walk) / shards, walk + index


def query_cores(load: Load, workload: Workload, constants: Constants) -> float:
    """Return the cores of all query processes for the pulls of all readers, with answers of 1 MiB."""
    pulled = load.bytes_a_s * workload.readers
    as_json = load.messages_a_s * workload.json_readers * constants.query_s_a_json_message
    return pulled * constants.query_s_a_byte + pulled / _ANSWER_BYTES * constants.query_s_a_request + as_json


def written_bytes_a_s(load: Load, workload: Workload) -> float:
    """Return the bytes written to disk: log, journal, units, entries, and pages that durable marks sync.

    Each durable mark writes the touched last pages of queues and the touched pages of slots again.
    """
    units = load.records_a_s * sizes.unit_bytes(workload)
    queue_pages = queues_touched(load) * PAGE_BYTES / DURABLE_INTERVAL_S
    slot_pages = _touched(DEFAULT_SLOTS * SLOT_SIZE / PAGE_BYTES, load.keys_a_s * DURABLE_INTERVAL_S)
    return (
        load.bytes_a_s
        + load.batches_a_s * JOURNAL_ENTRY_BYTES
        + units
        + queue_pages
        + load.keys_a_s * ENTRY_SIZE
        + slot_pages * PAGE_BYTES / DURABLE_INTERVAL_S
    )


def queues_touched(load: Load) -> float:
    """Return the number of queues with new messages between two durable marks; a batch goes to one queue."""
    return _touched(load.queues, load.batches_a_s * DURABLE_INTERVAL_S)


def sync_share(load: Load, constants: Constants, shards: int) -> float:
    """Return the share of the time between two durable marks that a shard's syncs of queues and index take."""
    return (queues_touched(load) / shards + 1) * constants.fdatasync_s / DURABLE_INTERVAL_S


def _touched(things: float, draws: float) -> float:
    """Return how many of *things* are expected to be drawn at least once in *draws* random draws."""
    return things * -math.expm1(-draws / things) if things else 0.0


def visible_s(share: float, constants: Constants) -> float:
    """Return the p50 of append to visible if the busiest part is busy for *share* of the time; infinite for 1 or more.

    A writer's group and a follower's chunk contain all waiting messages, so messages are not served one by one (M/D/1).
    A round costs a fixed time, and the time of the messages that came during the round before: r = c + share r.
    Therefore r = c / (1 - share), which applies to every stage.
    """
    return constants.visible_s / (1 - share) if share < 1 else math.inf
