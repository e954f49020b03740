"""Every state that a crash at any point of a trace may leave.

A killed process leaves its writes in the page cache: one state for each prefix of the trace, and one for each page
edge within its last write. A power cut leaves any of the states of `PageCache`: all of them up to EXHAUSTIVE (12
unsynced units of one write each), above that a seeded sample with the extremes: none of it, all of it, and each unit
alone there or alone missing.

A prefix whose states are all among those of the next one is left out: that is the case if the next operation only adds
an unsynced unit, and the next prefix is taken exhaustively.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .operations import Create, FailedSync, Note, Operation, Rename, Sync, SyncFolder, Write
from .page_cache import PAGE_SIZE, PageCache, Unit
from .promises import Promises
from .recorder import Recorder
from .tree import Tree

EXHAUSTIVE = 1 << 12
IGNORED = ("shard-0.lock", "shard-1.lock", ".standby", ".last-sync", "indexer/lock", "query/lock")  # no content: flock
_FLUSHED = "tidemark/writer/flushed"


class CrashState(NamedTuple):
    """One state. prefix: number of started operations; choice: the number of writes of each unsynced unit."""

    prefix: int
    power_cut: bool
    choice: tuple[int, ...]
    tree: Tree
    promises: Promises

    def __str__(self) -> str:
        kind = "power cut" if self.power_cut else "kill"
        return f"{kind} after {self.prefix} operations, units {''.join(map(str, self.choice)) or '-'}"


@dataclass
class Counts:
    """Counts of the examined states."""

    prefixes: int = 0
    exhaustive: int = 0  # prefixes, all of whose states were taken
    sampled: int = 0
    states: int = 0  # distinct ones
    opened: int = 0  # of these
    most_units: int = 0
    seeds: set[int] = field(default_factory=set)

    def __iadd__(self, other: Counts) -> Counts:
        for name in ("prefixes", "exhaustive", "sampled", "states", "opened"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.most_units = max(self.most_units, other.most_units)
        self.seeds |= other.seeds
        return self

    def __str__(self) -> str:
        return (
            f"{self.opened} of {self.states} different states at {self.prefixes} crash points; power cuts: "
            f"{self.exhaustive} exhaustive, {self.sampled} sampled, up to {self.most_units} unsynced units; "
            f"seeds {sorted(self.seeds)}"
        )


def crash_states(
    recorder: Recorder,
    counts: Counts,
    *,
    seed: int,
    samples: int,
    page_size: int = PAGE_SIZE,
    first: int = 0,
    known: Promises | None = None,
) -> Iterator[CrashState]:
    """Yield all distinct states of the trace, without crash points before operation number *first*.

    known: the clients' knowledge before the trace
    """
    source = random.Random(seed)
    counts.seeds.add(seed)
    trace = recorder.trace
    cache = PageCache(recorder.base, recorder.files, page_size=page_size, ignored=IGNORED)
    promises = copy.deepcopy(known) if known is not None else Promises()
    flushed_files = {recorder.files[_FLUSHED]} if _FLUSHED in recorder.files else set()
    seen: set[object] = set()
    for prefix in range(len(trace) + 1):
        following = trace[prefix] if prefix < len(trace) else None
        if prefix >= first:
            counts.prefixes += 1
            found = itertools.chain(
                _killed(cache, following),
                _cut(cache, following, counts, source, samples),
            )
            for power_cut, choice, tree in found:
                key = (power_cut, tree.key(), promises.key())
                if key not in seen:
                    seen.add(key)
                    counts.states += 1
                    yield CrashState(prefix, power_cut, choice, tree, copy.deepcopy(promises))
        if following is not None:
            _learn(following, flushed_files)
            promises.take(following, flushed_files)
            cache.apply(following)


def _learn(operation: Operation, flushed_files: set[int]) -> None:
    if isinstance(operation, Create) and operation.path == _FLUSHED:
        flushed_files.add(operation.file)


_Found = Iterator[tuple[bool, tuple[int, ...], Tree]]


def _killed(cache: PageCache, following: Operation | None) -> _Found:
    yield False, (), cache.everything()
    if isinstance(following, Write):  # the kernel copies page by page, and ends a killed process between two
        edge = (following.at // PAGE_SIZE + 1) * PAGE_SIZE - following.at
        while edge < len(following.data):
            torn = copy.deepcopy(cache)
            torn.apply(Write(following.file, following.at, following.data[:edge]))
            yield False, (edge,), torn.everything()
            edge += PAGE_SIZE


def _adds_only(operation: Operation) -> bool:
    return not isinstance(operation, Sync | FailedSync | SyncFolder | Note | Rename)


def _cut(cache: PageCache, following: Operation | None, counts: Counts, source: random.Random, samples: int) -> _Found:
    units = cache.units()
    counts.most_units = max(counts.most_units, sum(unit.writes for unit in units))
    if cache.count() <= EXHAUSTIVE:
        counts.exhaustive += 1
        if following is not None and _adds_only(following) and cache.count_with(following) <= EXHAUSTIVE:
            return
        choices: Sequence[tuple[int, ...]] = list(itertools.product(*(range(unit.writes + 1) for unit in units)))
    else:
        counts.sampled += 1
        choices = _sample(units, source, samples)
    for choice in choices:
        yield True, choice, cache.state(units, choice)


def _sample(units: list[Unit], source: random.Random, samples: int) -> list[tuple[int, ...]]:
    none, whole = tuple(0 for _ in units), tuple(unit.writes for unit in units)
    chosen = {none, whole}
    for i, unit in enumerate(units):
        chosen.add((*none[:i], unit.writes, *none[i + 1 :]))
        chosen.add((*whole[:i], 0, *whole[i + 1 :]))
    for _ in range(samples):
        chosen.add(tuple(source.randint(0, unit.writes) for unit in units))
    return sorted(chosen)
