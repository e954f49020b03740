"""Checks the model: predicts and measures quantities that are not constants."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.append_to_visible import measure as measure_visible
from benchmarks.batches import plain_batch
from benchmarks.indexing import index_once
from benchmarks.processes import WORKER
from benchmarks.producers import PRODUCERS, Load, require_stored
from benchmarks.rows.start import start_to_serving
from benchmarks.scale import memory, model, sizes
from benchmarks.scale.constants import Check, Constants
from benchmarks.scale.load import Load as PairLoad
from benchmarks.scale.load import task_cores, visible_s, writer_cores
from benchmarks.scale.measure import queues, stored
from benchmarks.scale.measure.repeat import committed_bytes, wait_until_visible
from benchmarks.scale.measure.visible import RATE
from benchmarks.scale.measure.writer import run as run_writer
from benchmarks.scale.workload import Workload
from benchmarks.stack import running
from benchmarks.stores import append_log, passing_store
from tidemark.client import Producer, SendResult
from tidemark.format.index_file import DEFAULT_ENTRIES, DEFAULT_SLOTS
from tidemark.local.local_stack import QUERY, WRITER

QUEUES = 300
_FILES = sizes.Files(64 << 20, 200_000, 460_000, 25_000, 100_000)
_SHAPE = Workload(0, 300, batch=500, keys=2, key_bytes=14, topic_bytes=11, queues=24)
_BATCHES = 400
_REBUILT = Load("rebuild", 1000, 1024, 150, keyed=True)
_OF_REBUILT = Workload(0, _REBUILT.body_bytes, keys=1, key_bytes=7, topic_bytes=len(_REBUILT.topic))
_MESSAGES = PRODUCERS * _REBUILT.batches * _REBUILT.messages
_SECONDS = 12
_BATCHES_A_S, _MESSAGES_A_BATCH, _BODY_BYTES = 200.0, 1000, 100  # of the concurrent load
_MOST_UNDER_WAY = 64


def measure(folder: Path, constants: Constants) -> list[Check]:
    """Run all checks, on *folder*'s file system."""
    return [
        *_sizes(folder),
        *_queues(folder, constants),
        *_rebuild(folder, constants),
        _rebuild_in_ranges(folder, constants),
        _writer(folder, constants),
        _visible(folder, constants),
    ]


def _sizes(folder: Path) -> list[Check]:
    checks = []
    for is_batch in (False, True):
        workload = Workload(**{**vars(_SHAPE), "batch_queues": is_batch})
        with passing_store(folder / "sizes") as data:
            stored.make(data, workload, _BATCHES, _FILES)
            found, told = stored.look(data, workload), stored.predict(workload, _BATCHES, _FILES)
        kind = "BatchCQ topic" if is_batch else "topic of single messages"
        by = f"{_BATCHES} batches of {workload.batch} × {workload.body_bytes} B, {workload.queues} queues, {kind}"
        for name, unit in (
            ("log_bytes", "B"),
            ("queue_bytes", "B"),
            ("queue_files", "files"),
            ("index_entries", "entries"),
            ("index_files", "files"),
        ):
            what = name.replace("_", " ")
            checks.append(Check(what, float(getattr(told, name)), float(getattr(found, name)), unit, by))
    return checks


def _queues(folder: Path, constants: Constants) -> list[Check]:
    by = f"all services, {QUEUES} queues written, built and read"
    with passing_store(folder / "checked-queues") as data:
        seen = queues.sample(data, QUEUES)
        started = start_to_serving(data, "queues")
    files = {
        WRITER: memory.writer_files(1, constants),
        WORKER: memory.worker_files(QUEUES, 1, constants),
        QUERY: memory.query_files(QUEUES, 1, constants),
    }
    own = {
        WRITER: constants.writer_base_bytes + QUEUES * constants.writer_bytes_a_queue,
        WORKER: constants.worker_base_bytes + QUEUES * constants.worker_bytes_a_queue,
        QUERY: constants.query_base_bytes + QUEUES * constants.query_bytes_a_queue,
    }
    return [
        *(Check(f"open files, {role}", files[role], float(seen.files[role]), "files", by) for role in files),
        *(Check(f"memory, {role}", own[role], seen.memory[role], "B", by) for role in own),
        Check("start to the first pull", model.start_s(QUEUES, constants), started.pull_s, "s", by),
    ]


def _rebuild(folder: Path, constants: Constants) -> list[Check]:
    with passing_store(folder / "rebuilt") as data:
        append_log(data, _REBUILT)
        index_once(data)
        rebuilt = index_once(data, "tidemark.cli.main", "store", "rebuild", str(data.absolute()))
    by = f"{rebuilt.end_offset / 1e9:.2f} GB of {_REBUILT.body_bytes:,} B messages with two keys, log in memory"
    return [
        Check("its log", sizes.log_bytes(_OF_REBUILT, _MESSAGES), float(rebuilt.end_offset), "B", by),
        Check("rebuild", model.rebuild_s(_OF_REBUILT, _MESSAGES, constants), rebuilt.total_s, "s", by),
    ]


def _rebuild_in_ranges(folder: Path, constants: Constants) -> Check:
    """Check the rebuild of a log of small files, whose ranges are first scanned on all cores of this machine."""
    files = stored.settings_of(_FILES._replace(index_slots=DEFAULT_SLOTS, index_entries=DEFAULT_ENTRIES))
    settings = {**files, "TIDEMARK_SCAN_RANGE_SIZE_BYTES": str(_FILES.segment_bytes)}
    cores = len(os.sched_getaffinity(0))
    with passing_store(folder / "ranges") as data:
        append_log(data, _REBUILT, settings=files)
        index_once(data, settings=files)
        rebuilt = index_once(data, "tidemark.cli.main", "store", "rebuild", str(data.absolute()), settings=settings)
    told = model.rebuild_s(_OF_REBUILT, _MESSAGES, constants, cores=cores, in_ranges=True)
    by = f"the same in ranges of {_FILES.segment_bytes >> 20} MiB, on {cores} cores"
    return Check("rebuild in ranges", told, rebuilt.total_s, "s", by)


def _writer(folder: Path, constants: Constants) -> Check:
    load = Load("other", 100, 1024, 1000)
    batches, messages, log_bytes, cpu = run_writer(folder / "checked-writer", load)
    pair = PairLoad(messages, batches, messages, log_bytes, 0, PRODUCERS, is_inner=False)
    by = f"{messages:,.0f} messages of 1 KiB in batches of 100, sync"
    return Check("writer's processor time", writer_cores(pair, constants), cpu, "s", by)


def _visible(folder: Path, constants: Constants) -> Check:
    """Check append to visible under a steady concurrent load."""
    stopping = threading.Event()
    with (
        passing_store(folder / "loaded") as data,
        running(data) as stack,
        ThreadPoolExecutor(1) as pool,
    ):
        sent = pool.submit(_send, stack.writer_address, stopping)
        try:
            measure_visible(stack.writer_address, stack.query_url, count=int(RATE * 2), rate=RATE)
            began, log_before = time.perf_counter(), committed_bytes(data)
            latencies = measure_visible(stack.writer_address, stack.query_url, count=int(RATE * _SECONDS), rate=RATE)
            log_bytes_a_s = (committed_bytes(data) - log_before) / (time.perf_counter() - began)
        finally:
            stopping.set()
        batches_a_s = sent.result()
        wait_until_visible(data)
    messages_a_s = batches_a_s * _MESSAGES_A_BATCH
    load = PairLoad(messages_a_s, batches_a_s, messages_a_s, log_bytes_a_s, batches_a_s, 1, is_inner=False)
    share = max(writer_cores(load, constants), task_cores(load, constants, 1)[0])
    by = f"with {messages_a_s:,.0f} messages/s of {_BODY_BYTES} B, {share:.0%} of a core in the busiest process"
    seen = float(np.percentile(latencies.visible, 50)) / 1000
    return Check("append to visible, p50", visible_s(share, constants), seen, "s", by)


def _send(address: str, stopping: threading.Event) -> float:
    """Send batches until *stopping* is set, and return the batches per second."""
    packed = plain_batch(_MESSAGES_A_BATCH, _BODY_BYTES)
    under_way: deque[Future[SendResult]] = deque()
    with Producer(address, timeout_s=30) as producer:
        producer.topics.create("load", queues=1)
        began, count = time.perf_counter(), 0
        while not stopping.wait(max(0.0, began + count / _BATCHES_A_S - time.perf_counter())):
            under_way.append(producer.send_packed_async("load", packed, count=_MESSAGES_A_BATCH, queue_id=0))
            count += 1
            if len(under_way) > _MOST_UNDER_WAY:
                require_stored(under_way.popleft().result())
        took = time.perf_counter() - began
        for future in under_way:
            require_stored(future.result())
    return count / took
