"""Memory and open files of a pair's processes."""

from __future__ import annotations

from benchmarks.scale.constants import Constants
from benchmarks.scale.load import IN_FLIGHT_BYTES, PAGE_BYTES, Load
from benchmarks.scale.sizes import DEFAULT_FILES
from benchmarks.scale.workload import Workload
from tidemark.format.index_file import SLOT_SIZE


def own_bytes(queues: int, constants: Constants, queries: int = 1) -> float:
    """Of all processes of a pair, without pages of files; everything in flight that the writer may take."""
    writer = constants.writer_base_bytes + queues * constants.writer_bytes_a_queue + IN_FLIGHT_BYTES
    worker = constants.worker_base_bytes + queues * constants.worker_bytes_a_queue
    query = constants.query_base_bytes + queues * constants.query_bytes_a_queue
    return writer + worker + constants.spark_bytes + queries * query


def cache_bytes(load: Load, workload: Workload) -> float:
    """Pages of files that should stay in memory: what readers have not read yet, the slots that are written, queues'
    last pages."""
    return load.bytes_a_s * workload.reader_lag_s + DEFAULT_FILES.index_slots * SLOT_SIZE + load.queues * PAGE_BYTES


def writer_files(segments: float, constants: Constants) -> float:
    """Open in the writer: a descriptor for each file of the log that it has made since its start and still keeps."""
    return constants.writer_base_files + segments


def worker_files(queues: int, segments: float, constants: Constants) -> float:
    """Open in the worker that follows: a queue's file for each queue that came up in the epoch, and segments walked.

    A queue that goes on to its next file has both until the epoch ends.
    """
    return constants.worker_base_files + queues + segments


def query_files(queues: int, segments: float, constants: Constants) -> float:
    """Open in a query service: a file for each queue, and each segment, that was read and is still there."""
    return constants.query_base_files + queues + segments


def most_files(queues: int, log_bytes: float, constants: Constants) -> float:
    """Of the process with the most, when every queue was used and the whole log was read: the query service."""
    segments = log_bytes / DEFAULT_FILES.segment_bytes
    return max(
        writer_files(segments, constants),
        worker_files(queues, 1, constants),
        query_files(queues, segments, constants),
    )
