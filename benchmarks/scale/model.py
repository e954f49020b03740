"""The model: the needs of a pair for a workload, the limit of each resource, and the required number of pairs.

It consists of pure functions of a workload, a machine and the measured constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from benchmarks.scale import memory, sizes
from benchmarks.scale.constants import Constants
from benchmarks.scale.load import (
    Load,
    query_cores,
    sync_share,
    task_cores,
    visible_s,
    writer_cores,
    written_bytes_a_s,
)
from benchmarks.scale.workload import DAY_S, Machine, Workload
from services.writer.retention import retention_thread as retention
from services.writer.retention import segment_ages as file_ages

ONE_PROCESS_CORES = 1.0  # a Python process is limited by the interpreter's lock
MOST_SHARDS: int = 64
BUILDERS = 2  # tasks of a rebuild: one for the queues, one for the key index
_NEVER = 1e12  # messages a second
_HALVINGS = 50
RETENTION_BYTES_A_S = file_ages._CHUNK_SIZE_BYTES / retention._REST_S  # it pauses between two reads


class Need(NamedTuple):
    """The need of one pair for one resource. most: the usable amount; moves: the settings or changes that affect it."""

    resource: str
    used: float
    most: float
    unit: str
    moves: str

    @property
    def share(self) -> float:
        """The used share; above 1 the resource is insufficient."""
        return self.used / self.most


@dataclass(frozen=True)
class Plan:
    """A number of equal pairs with their shards and query processes. needs: of one pair, greatest share first."""

    workload: Workload
    machine: Machine
    pairs: int
    shards: int
    queries: int
    needs: tuple[Need, ...]

    @property
    def fits(self) -> bool:
        """True if each resource is sufficient."""
        return self.needs[0].share <= 1

    @property
    def load(self) -> Load:
        """The load of one pair."""
        return Load.of(self.workload, self.pairs)


def plan(workload: Workload, machine: Machine, constants: Constants) -> Plan:
    """Return the plan with the fewest pairs that fit, each with the best number of shards."""
    most = 1
    while not plan_of(workload, machine, constants, most).fits:
        most *= 2
    least = most // 2  # too few, or 0
    while most - least > 1:
        middle = (least + most) // 2
        if plan_of(workload, machine, constants, middle).fits:
            most = middle
        else:
            least = middle
    return plan_of(workload, machine, constants, most)


def plan_of(workload: Workload, machine: Machine, constants: Constants, pairs: int) -> Plan:
    """Return the plan with *pairs* pairs, and the fewest shards that fit, or that come nearest if none fit."""
    plans = []
    for shards in range(1, MOST_SHARDS + 1):
        found = _plan(workload, machine, constants, pairs, shards)
        if found.fits:
            return found
        plans.append(found)
    return min(plans, key=lambda one: (one.needs[0].share, one.shards))


def _plan(workload: Workload, machine: Machine, constants: Constants, pairs: int, shards: int) -> Plan:
    load = Load.of(workload, pairs)
    of_queries = query_cores(load, workload, constants)
    queries = max(1, math.ceil(of_queries / (ONE_PROCESS_CORES * machine.most)))
    needs = [
        *_of_processors(load, workload, machine, constants, shards),
        *_of_disk(load, workload, machine, constants, pairs, shards),
        *_of_memory(load, workload, machine, constants, pairs, queries),
    ]
    return Plan(workload, machine, pairs, shards, queries, tuple(sorted(needs, key=lambda need: -need.share)))


def _of_processors(load: Load, workload: Workload, machine: Machine, constants: Constants, shards: int) -> list[Need]:
    writer = writer_cores(load, constants)
    queues, index = task_cores(load, constants, shards)
    everything = writer + shards * queues + index + query_cores(load, workload, constants)
    one = ONE_PROCESS_CORES * machine.most
    return [
        Need("writer's core", writer, one, "cores", "larger batches, BatchCQ topics; then more pairs"),
        Need("core of a task that builds queues", queues, one, "cores", "`TIDEMARK_SHARDS`; then more pairs"),
        Need("core of the key index", index, one, "cores", "fewer keys, BatchCQ topics; then more pairs"),
        Need("all cores", everything, machine.cores * machine.most, "cores", "cores; fewer readers; more pairs"),
    ]


def _of_disk(
    load: Load, workload: Workload, machine: Machine, constants: Constants, pairs: int, shards: int
) -> list[Need]:
    a_day = workload.messages_a_day / pairs
    kept = sizes.stored_bytes(workload, a_day * workload.retention_days)
    log_a_s = sizes.log_bytes(workload, a_day) / DAY_S
    return [
        Need(
            "bytes to the disk",
            written_bytes_a_s(load, workload),
            constants.disk_write_bytes_a_s * machine.most,
            "B/s",
            "`TIDEMARK_COMMIT_LOG_PATHS` on several disks; more pairs",
        ),
        Need(
            "time of a shard's syncs",
            sync_share(load, constants, shards),
            machine.most,
            "s/s",
            "fewer queues, `TIDEMARK_DURABLE_INTERVAL_MS`, `TIDEMARK_SHARDS`",
        ),
        Need("disk", kept, machine.disk_bytes * 0.85, "B", "`TIDEMARK_RETENTION_HOURS`; disks; more pairs"),
        Need("retention's walk", log_a_s, RETENTION_BYTES_A_S, "B/s", "more pairs"),
    ]


def _of_memory(
    load: Load, workload: Workload, machine: Machine, constants: Constants, pairs: int, queries: int
) -> list[Need]:
    stored = workload.messages_a_day / pairs * workload.retention_days
    own = memory.own_bytes(load.queues, constants, queries) + memory.cache_bytes(load, workload)
    files = memory.most_files(load.queues, sizes.log_bytes(workload, stored), constants)
    maps = sizes.index_files(workload, stored)
    return [
        Need("memory", own, machine.memory_bytes * 0.9, "B", "less reader lag; fewer query processes; more pairs"),
        Need("open files of a process", files, machine.files, "files", "`LimitNOFILE`, `ulimit -n`; fewer queues"),
        Need(
            "mapped index files", maps, machine.maps, "files", "`TIDEMARK_INDEX_ENTRIES`, `vm.max_map_count`; retention"
        ),
    ]


def lag_s(found: Plan, constants: Constants) -> float:
    """Return the p50 of append to visible in the busiest minute, which the busiest of writer and tasks determines."""
    queues, index = task_cores(found.load, constants, found.shards)
    return visible_s(max(writer_cores(found.load, constants), queues, index), constants)


def rebuild_s(
    workload: Workload,
    messages: float,
    constants: Constants,
    *,
    cores: int = BUILDERS,
    in_ranges: bool | None = None,
    from_disk: bool = False,
) -> float:
    """Return the seconds of `tidemark store rebuild` for a log of *messages* on this many cores.

    in_ranges  ranges of the log are first scanned on all cores, and two tasks build from the result; otherwise each of
               the two reads the log. None: True if there are more than two cores (docs/decisions/0020)
    from_disk  the log is not in memory, so that the disk limits the speed
    """
    records, log = sizes.records(workload, messages), sizes.log_bytes(workload, messages)
    disk = log / constants.disk_read_bytes_a_s if from_disk else 0.0
    walk = records * constants.walk_s_a_record + log * constants.walk_s_a_byte
    queues = records * constants.queues_s_a_record + log * constants.queues_s_a_byte
    keys = sizes.index_entries(workload, messages) * constants.index_s_a_key
    if not (cores > BUILDERS if in_ranges is None else in_ranges):
        return constants.rebuild_start_s + max(queues, walk + keys, disk)
    units = records * max(0.0, constants.queues_s_a_record - constants.walk_s_a_record)
    return constants.rebuild_start_s + max((queues - units) / cores, disk) + max(units, keys)


class Lookup(NamedTuple):
    """The seconds of a lookup of a key in all index files, with the files in memory and on disk."""

    warm_s: float
    cold_s: float


def lookup(workload: Workload, messages: float, constants: Constants) -> Lookup:
    """Return the cost of a lookup without a time range, which searches every file.

    Cold, each file costs a page for its slot and a page for each entry of the chain.
    """
    files = sizes.index_files(workload, messages)
    pages = 1 + sizes.DEFAULT_FILES.index_entries / sizes.DEFAULT_FILES.index_slots
    warm = constants.lookup_s + (files - 1) * constants.lookup_s_a_file
    return Lookup(warm, warm + files * pages * constants.disk_read_s)


def start_s(queues: int, constants: Constants) -> float:
    """Return the seconds from the start to the first answered pull."""
    return constants.start_s + queues * constants.start_s_a_queue


def needs_of(
    workload: Workload, machine: Machine, constants: Constants, *, pairs: int = 1, shards: int = 1
) -> dict[str, Need]:
    """Return the needs of one of *pairs* by resource, in a fixed order."""
    found = _plan(workload, machine, constants, pairs, shards).needs
    return {need.resource: need for need in sorted(found, key=lambda need: need.resource)}


def greatest_rate(
    workload: Workload, machine: Machine, constants: Constants, resource: str, *, shards: int = 1
) -> float:
    """Return the messages per second, in the busiest minute, at which a pair exhausts *resource*; infinite if never."""

    def fits(rate: float) -> bool:
        asked = replace(workload, messages_a_day=rate / workload.peak * DAY_S)
        return needs_of(asked, machine, constants, shards=shards)[resource].share <= 1

    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, high * 2
        if high > _NEVER:
            return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
