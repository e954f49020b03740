"""All benchmarks by name, in the order they run in, and which ones a few words pick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from benchmarks.benchmark import Benchmark
from benchmarks.rows import append, send_single

_MODULES = (append, send_single)
BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for module in _MODULES for benchmark in module.BENCHMARKS
}


def pick(words: Sequence[str], benchmarks: Iterable[Benchmark] | None = None) -> list[Benchmark]:
    """The benchmarks that *words* name, in the catalog's order; without a word all but those that want to be named.

    A word is a benchmark's name, the key of a row, the first words of a name (`append`, `pull_arrow`), or a pattern
    with `*`. KeyError for one that is none of these.
    """
    everything = list(BENCHMARKS.values() if benchmarks is None else benchmarks)
    if not words:
        return [benchmark for benchmark in everything if not benchmark.when_named]
    picked: set[str] = set()
    for word in words:
        names = {benchmark.name for benchmark in everything if _is_meant(word, benchmark)}
        if not names:
            raise KeyError(word)
        picked |= names
    return [benchmark for benchmark in everything if benchmark.name in picked]


def _is_meant(word: str, benchmark: Benchmark) -> bool:
    if word == benchmark.name or word in benchmark.keys:
        return True
    return benchmark.name.startswith(f"{word}_") or fnmatchcase(benchmark.name, word)
