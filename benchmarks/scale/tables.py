"""The tables of docs/scale.md: Markdown, computed from the committed constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from benchmarks.scale import memory, model
from benchmarks.scale.constants import Check, Constants, Measured
from benchmarks.scale.load import Load, sync_share
from benchmarks.scale.model import Plan
from benchmarks.scale.workload import SERVER, Workload

RATES = (1e9, 1e12)
BODIES = (100, 1024)
QUEUES_A_PAIR = 256  # queues per pair of a workload
_SHARDS = (1, 4)
_NEVER = "never"
_QUEUES = (16, 1_000, 10_000, 100_000)
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_OF_TIMES = (("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("days", 86_400.0))


def workloads(*, batch_queues: bool = False) -> list[Workload]:
    """Return the workloads of the page, by messages per day and bytes of a body."""
    return [
        Workload(rate, body, batch_queues=batch_queues, queues=QUEUES_A_PAIR * math.ceil(rate / 1e9))
        for rate in RATES
        for body in BODIES
    ]


def parts(measured: Measured) -> dict[str, str]:
    """Return the tables by their names in the page."""
    constants = measured.constants
    return {
        "machine": "; ".join(f"{name}: {text}" for name, text in measured.machine.items()) + ".",
        "limits": _limits(constants),
        "plans": _plans(constants),
        "queues": _queues(constants),
        "checks": _checks(measured.checks),
        "pairs": _table(("figure", "value"), ([one.what, f"{one.value:,.0f} {one.unit}"] for one in measured.pairs)),
    }


def _limits(constants: Constants) -> str:
    shapes = {f"{body:,} B": Workload(1e9, body, queues=QUEUES_A_PAIR) for body in BODIES}
    shapes["100 B, batches of 1"] = replace(shapes["100 B"], batch=1)
    rows = []
    for resource, need in model.needs_of(shapes["100 B"], SERVER, constants).items():
        cells = []
        for workload in shapes.values():
            rates = [model.greatest_rate(workload, SERVER, constants, resource, shards=one) for one in _SHARDS]
            one, several = (count(rate) if math.isfinite(rate) else _NEVER for rate in rates)
            cells.append(one if one == several else f"{one}/{several}")
        if set(cells) != {_NEVER}:
            rows.append([resource, *cells, need.moves])
    return _table(("resource", *shapes, "remedy"), rows)


def _plans(constants: Constants) -> str:
    plans, in_batches = (
        [model.plan(workload, SERVER, constants) for workload in workloads(batch_queues=is_batch)]
        for is_batch in (False, True)
    )
    titles = [
        f"{one.workload.messages_a_day:.0e} × {one.workload.body_bytes:,} B".replace("e+0", "e").replace("e+", "e")
        for one in plans
    ]
    lines: list[tuple[str, Callable[[Plan], str]]] = [
        ("**pairs**", lambda one: f"**{one.pairs:,}**"),
        ("limiting resource", lambda one: one.needs[0].resource),
        ("next resource", lambda one: f"{one.needs[1].resource} ({one.needs[1].share:.0%})"),
        ("pairs with an endless disk", lambda one: _without_disk(one, constants)),
        (
            "messages, log per second",
            lambda one: f"{count(one.load.messages_a_s)}, {si(one.load.bytes_a_s, 'B')}",
        ),
        ("disk", lambda one: si(_used(one, "disk"), "B")),
        ("lookup of a key: memory, disk", lambda one: _lookup(one, constants)),
        ("rebuild", lambda one: _rebuild(one, constants)),
        ("shards, query processes", lambda one: f"{one.shards}, {one.queries}"),
        ("memory with page cache", lambda one: si(_used(one, "memory"), "B")),
        ("open files of one process", lambda one: f"{_used(one, 'open files of a process'):,.0f}"),
        ("append to visible, p50", lambda one: seconds(model.lag_s(one, constants))),
        ("disk of all pairs", lambda one: si(one.pairs * _used(one, "disk"), "B")),
    ]
    again: list[tuple[str, Callable[[Plan], str]]] = [
        ("BatchCQ: **pairs**", lambda one: f"**{one.pairs:,}**"),
        ("BatchCQ: lookup of a key", lambda one: _lookup(one, constants)),
        ("BatchCQ: rebuild", lambda one: _rebuild(one, constants)),
    ]
    rows = [
        *([name, *map(cell, plans)] for name, cell in lines),
        *([name, *map(cell, in_batches)] for name, cell in again),
    ]
    return _table(("", *titles), rows)


def _without_disk(found: Plan, constants: Constants) -> str:
    """Return the pairs that the rates require, regardless of disk space."""
    endless = model.plan(found.workload, replace(found.machine, disk_bytes=math.inf), constants)
    return f"{endless.pairs:,}"


def _used(found: Plan, resource: str) -> float:
    return next(need.used for need in found.needs if need.resource == resource)


def _a_day(found: Plan) -> float:
    return found.workload.messages_a_day / found.pairs


def _kept(found: Plan) -> float:
    return _a_day(found) * found.workload.retention_days


def _lookup(found: Plan, constants: Constants) -> str:
    took = model.lookup(found.workload, _kept(found), constants)
    return f"{seconds(took.warm_s)}, {seconds(took.cold_s)}"


def _rebuild(found: Plan, constants: Constants) -> str:
    cores = found.machine.cores
    return seconds(model.rebuild_s(found.workload, _kept(found), constants, cores=cores, from_disk=True))


def _queues(constants: Constants) -> str:
    rows = []
    for queues in _QUEUES:
        load = Load.of(replace(workloads()[0], queues=queues))
        first = model.start_s(queues, constants)
        rows.append(
            [
                f"{queues:,}",
                si(memory.own_bytes(queues, constants), "B"),
                f"{memory.worker_files(queues, 1, constants):,.0f}",
                f"{sync_share(replace(load, batches_a_s=math.inf), constants, 1):.0%}",
                seconds(first),
                seconds(max(first, constants.start_visible_s)),
            ]
        )
    titles = (
        "queues",
        "memory",
        "open files of the worker",
        "time of syncs",
        "start to first pull",
        "to first new message",
    )
    return _table(titles, rows)


def _checks(checks: Sequence[Check]) -> str:
    rows = []
    for by, group in groupby(checks, key=lambda check: check.by):
        all_of_it = list(group)
        others = [check for check in all_of_it if f"{check.predicted / check.measured:.2f}" != "1.00"]
        cells = [f"{one.what} {_exact(one.predicted, one)} → {_exact(one.measured, one)}" for one in others]
        rows.append([by, f"{len(all_of_it) - len(others)}/{len(all_of_it)}", "<br>".join(cells)])
    return _table(("measured with", "within 0.5 %", "others: predicted → measured"), rows)


def _exact(value: float, check: Check) -> str:
    if check.unit in ("files", "entries"):
        return f"{value:,.0f}"
    return seconds(value) if check.unit == "s" else si(value, check.unit)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def si(value: float, unit: str = "") -> str:
    """Return *value* with three digits and an SI prefix: 1.23 kB. A value in s is formatted as by `seconds`."""
    if unit == "s":
        return seconds(value)
    step = 0
    while abs(value) >= 999.5 and step < len(_PREFIXES) - 1:
        value, step = value / 1000, step + 1
    tail = f"{_PREFIXES[step]}{unit}"
    return f"{value:.3g} {tail}".strip()


def count(value: float) -> str:
    """Return *value* with three digits and an SI prefix, without a space: 1.23k."""
    return si(value).replace(" ", "")


def seconds(value: float) -> str:
    """Return *value* as a time with a suitable unit."""
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs" if value >= 1e-6 else f"{value * 1e9:.3g} ns"
    name, size = max((one for one in _OF_TIMES if value >= one[1]), key=lambda one: one[1])
    return f"{value / size:.3g} {name}"
