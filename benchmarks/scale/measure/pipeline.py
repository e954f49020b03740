"""Measures the pipeline's cost of a record, a byte and a key: runs its tasks over two logs, without Spark."""

from __future__ import annotations

import statistics
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.clients import Start, run_clients
from benchmarks.producers import Load
from benchmarks.scale.cost_fit import fit_costs
from benchmarks.scale.measure.repeat import TIMES, committed_bytes, forget_built
from benchmarks.stores import append_log
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch import run_epoch
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.prepare import prepare
from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import LogWalk
from tidemark.index.warm_up import warm_up
from tidemark.store.storage import DiskStorage

LARGE = Load("large", 100, 10_240, 120, unique_keys=True)
SMALL = Load("small", 1000, 100, 250, keyed=True)
_KEYS = {LARGE: 1, SMALL: 2}  # keys of a message: UNIQ_KEY, and for SMALL one in KEYS


class _Took(NamedTuple):
    """Seconds of processor time over one log, and the content of the log."""

    records: float
    log_bytes: float
    keys: float
    walk_s: float
    queues_s: float
    index_s: float


def make_logs(folder: Path) -> dict[Load, Path]:
    """Create the two stores below *folder*, not indexed."""
    stores = {LARGE: folder / "large", SMALL: folder / "small"}
    for load, data in stores.items():
        append_log(data, load)
    return stores


def measure(stores: dict[Load, Path]) -> dict[str, float]:
    """Return the constants of the pipeline. Afterwards, queues and index of the stores are built."""
    took = {load: run_clients([partial(_over_log, data, load)])[0] for load, data in stores.items()}
    large, small = took[LARGE], took[SMALL]
    amounts = [(one.records, one.log_bytes) for one in (large, small)]
    walk = fit_costs(amounts, [large.walk_s, small.walk_s])
    queues = fit_costs(amounts, [large.queues_s, small.queues_s])
    return {
        "walk_s_a_record": walk[0],
        "walk_s_a_byte": walk[1],
        "queues_s_a_record": queues[0],
        "queues_s_a_byte": queues[1],
        "index_s_a_key": max(0.0, small.index_s - small.walk_s) / small.keys,
    }


def _over_log(data: Path, load: Load, start: Start) -> _Took:
    plan = make_plan(PipelineSettings(store_root=data, once=True))
    warm_up()
    _walk(plan)
    start()
    _, records = _walk(plan)
    walk = statistics.median(_walk(plan)[0] for _ in range(TIMES))
    queues = statistics.median(_build(plan, 0) for _ in range(TIMES))
    index = statistics.median(_build(plan, 1) for _ in range(TIMES))
    return _Took(records, committed_bytes(data), records * _KEYS[load], walk, queues, index)


def _walk(plan: EpochPlan) -> tuple[float, int]:
    """Walk the log and return the seconds and the number of records."""
    end = committed_bytes(plan.root)
    walk = LogWalk(plan.open_log(), 0, Checker(crc=Crc.OFF), chunk_size_bytes=plan.chunk_size)
    began = time.process_time()
    records = sum(len(part.requests) for part in walk.parts(limit=end, floor=end))
    took = time.process_time() - began
    walk.close()
    return took, records


def _build(plan: EpochPlan, shard: int) -> float:
    """Build one shard from the log and return the seconds."""
    forget_built(plan.root)
    storage = DiskStorage()
    storage.make_folder(plan.paths.indexer)
    prepare(plan, storage)
    began = time.process_time()
    run_epoch(plan, shard=shard, follower=0, storage=storage)
    return time.process_time() - began
