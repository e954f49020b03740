"""All benchmarks by name, in the order in which they run, and the selection by words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from benchmarks.benchmark import Benchmark
from benchmarks.rows import (
    accumulated,
    append,
    append_stream,
    command,
    drain,
    failover,
    growth,
    lookup,
    loops,
    memory,
    pull,
    queues,
    rebuild,
    replication,
    resident,
    send_single,
    spark,
    start,
    visible,
    waiting,
)

_MODULES = (
    append,
    append_stream,
    replication,
    failover,
    send_single,
    accumulated,
    visible,
    pull,
    rebuild,
    lookup,
    start,
    queues,
    waiting,
    spark,
    drain,
    loops,
    resident,
    memory,
    growth,
    command,
)
BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for module in _MODULES for benchmark in module.BENCHMARKS}


def pick(words: Sequence[str], benchmarks: Iterable[Benchmark] | None = None) -> list[Benchmark]:
    """Return the benchmarks that *words* select, in the catalog's order; without words, all except those `when_named`.

    A word is a benchmark's name or the key of a row; otherwise the start of a name (`append`, `pull_raw`) or a pattern
    with `*`. Raises KeyError for a word that selects no benchmark.
    """
    everything = list(BENCHMARKS.values() if benchmarks is None else benchmarks)
    if not words:
        return [benchmark for benchmark in everything if not benchmark.when_named]
    picked = {name for word in words for name in _names(word, everything)}
    return [benchmark for benchmark in everything if benchmark.name in picked]


def _names(word: str, benchmarks: Sequence[Benchmark]) -> set[str]:
    exact = {benchmark.name for benchmark in benchmarks if word == benchmark.name or word in benchmark.keys}
    names = exact or {benchmark.name for benchmark in benchmarks if fnmatchcase(benchmark.name, f"{word}*")}
    if not names:
        raise KeyError(word)
    return names
