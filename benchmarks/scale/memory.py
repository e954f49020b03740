"""Memory and open files of a pair's processes."""

from __future__ import annotations

from benchmarks.scale.constants import Constants
from benchmarks.scale.load import IN_FLIGHT_BYTES, PAGE_BYTES, Load
from benchmarks.scale.sizes import DEFAULT_FILES
from benchmarks.scale.workload import Workload
from tidemark.format.index_layout import SLOT_SIZE


def own_bytes(queues: int, constants: Constants, queries: int = 1) -> float:
    """Return the memory of all processes of a pair without file pages, with the maximum of bytes in flight."""
    writer = constants.writer_base_bytes + queues * constants.writer_bytes_a_queue + IN_FLIGHT_BYTES
    worker = constants.worker_base_bytes + queues * constants.worker_bytes_a_queue
    query = constants.query_base_bytes + queues * constants.query_bytes_a_queue
    return writer + worker + constants.spark_bytes + queries * query


def cache_bytes(load: Load, workload: Workload) -> float:
    """Return the file pages that should stay in memory, bytes: unread records, written slots, queues' last pages."""
    return load.bytes_a_s * workload.reader_lag_s + DEFAULT_FILES.index_slots * SLOT_SIZE + load.queues * PAGE_BYTES


def writer_files(segments: float, constants: Constants) -> float:
    """Return the open files of the writer: one for each log file that it created since its start and still keeps."""
    return constants.writer_base_files + segments


def worker_files(queues: int, segments: float, constants: Constants) -> float:
    """Return the open files of the following worker: one for each queue written in the epoch, and the walked segments.

    A queue that rolls to its next file has two open files until the epoch ends.
    """
    return constants.worker_base_files + queues + segments


def query_files(queues: int, segments: float, constants: Constants) -> float:
    """Return the open files of a query service: one for each queue and segment that was read and still exists."""
    return constants.query_base_files + queues + segments


def most_files(queues: int, log_bytes: float, constants: Constants) -> float:
    """Return the open files of the query service, which has the most, after reads of every queue and the whole log."""
    segments = log_bytes / DEFAULT_FILES.segment_bytes
    return max(
        writer_files(segments, constants),
        worker_files(queues, 1, constants),
        query_files(queues, segments, constants),
    )
