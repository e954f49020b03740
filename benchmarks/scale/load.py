"""The share of a workload that one of several pairs takes, in its busiest minute, and what it costs there."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.scale import sizes
from benchmarks.scale.constants import Constants
from benchmarks.scale.workload import Workload
from services.indexer.pipeline.config import PipelineSettings
from services.writer.config import WriterSettings
from tidemark.format.index_file import DEFAULT_SLOTS, ENTRY_SIZE, SLOT_SIZE
from tidemark.store.batch_journal import ENTRY_SIZE as JOURNAL_ENTRY_BYTES

PAGE_BYTES = 4096
_ANSWER_BYTES = 1 << 20
DURABLE_INTERVAL_S: float = PipelineSettings.model_fields["durable_interval_ms"].default / 1000
IN_FLIGHT_BYTES: int = WriterSettings.model_fields["max_in_flight_bytes"].default


@dataclass(frozen=True)
class Load:
    """On one pair. Rates are those of the busiest second; queues: of this pair."""

    messages_a_s: float
    batches_a_s: float
    records_a_s: float
    bytes_a_s: float  # of the log
    keys_a_s: float  # entries of the key index
    queues: int
    is_inner: bool

    @classmethod
    def of(cls, workload: Workload, pairs: int = 1) -> Load:
        """An even share."""
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
    """Of the writer's process."""
    a_message = constants.writer_s_an_inner_message if load.is_inner else constants.writer_s_a_message
    return (
        load.batches_a_s * constants.writer_s_a_batch
        + load.messages_a_s * a_message
        + load.bytes_a_s * constants.writer_s_a_byte
    )


def task_cores(load: Load, constants: Constants, shards: int) -> tuple[float, float]:
    """(of one task that builds queues, of the one that builds the key index); with one shard they are one task.

    Each task of several walks the whole log, and builds its own queues only.
    """
    walk = load.records_a_s * constants.walk_s_a_record + load.bytes_a_s * constants.walk_s_a_byte
    queues = load.records_a_s * constants.queues_s_a_record + load.bytes_a_s * constants.queues_s_a_byte
    index = load.keys_a_s * constants.index_s_a_key
    if shards == 1:
        return queues + index, 0.0
    return walk + max(0.0, queues - walk) / shards, walk + index


def query_cores(load: Load, workload: Workload, constants: Constants) -> float:
    """Of all query processes: what each reader pulls, in answers of a mebibyte."""
    pulled = load.bytes_a_s * workload.readers
    as_json = load.messages_a_s * workload.json_readers * constants.query_s_a_json_message
    return pulled * constants.query_s_a_byte + pulled / _ANSWER_BYTES * constants.query_s_a_request + as_json


def written_bytes_a_s(load: Load, workload: Workload) -> float:
    """To the disk: log, journal, units and entries, and the pages of queues and slots that a durable mark syncs.

    A queue's last page, and a page of slots, is written again at each mark that finds it touched.
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
    """Queues that got something between two durable marks; a batch goes to one queue."""
    return _touched(load.queues, load.batches_a_s * DURABLE_INTERVAL_S)


def sync_share(load: Load, constants: Constants, shards: int) -> float:
    """Of the time between two durable marks that a shard's syncs take, one after the other: its queues', the index."""
    return (queues_touched(load) / shards + 1) * constants.fdatasync_s / DURABLE_INTERVAL_S


def _touched(things: float, draws: float) -> float:
    """How many of *things* are met by *draws* at random."""
    return things * -math.expm1(-draws / things) if things else 0.0


def visible_s(share: float, constants: Constants) -> float:
    """Append to visible, p50, where the busiest part is busy for *share* of the time; infinite when it is all of it.

    A writer's group and a follower's chunk take everything that waits, so this is no queue whose messages are served
    one by one (M/D/1): a round costs a fixed time and the time of what came during the round before, r = c + share r.
    So r = c / (1 - share), and every stage of the way stretches like that.
    """
    return constants.visible_s / (1 - share) if share < 1 else math.inf
