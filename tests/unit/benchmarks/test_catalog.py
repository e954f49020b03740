"""Selection of benchmarks by words."""

from __future__ import annotations

import pytest

from benchmarks.benchmark import Benchmark
from benchmarks.catalog import BENCHMARKS, pick
from benchmarks.report import Result, Row


def _benchmark(name: str, *keys: str, when_named: bool = False) -> Benchmark:
    return Benchmark(name, keys, lambda *_: Result([], []), when_named=when_named)


SOME = [
    _benchmark("append_sync", "append_sync"),
    _benchmark("append_sync_batch", "append_sync_batch"),
    _benchmark("start", "start_clean_s", "start_killed_s"),
    _benchmark("memory", "memory_writer_mb", when_named=True),
]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["append_sync", "append_sync_batch", "start"]),
        (["memory"], ["memory"]),
        (["append_sync"], ["append_sync"]),  # a whole name selects only that benchmark
        (["append"], ["append_sync", "append_sync_batch"]),
        (["start_killed_s"], ["start"]),
        (["start", "*batch"], ["append_sync_batch", "start"]),  # the result is in the catalog's order
    ],
)
def test_words_select_benchmarks(words: list[str], names: list[str]) -> None:
    """A word is a name, a key, the start of a name, or a pattern."""
    assert [benchmark.name for benchmark in pick(words, SOME)] == names


def test_a_word_that_selects_no_benchmark_is_refused() -> None:
    """Otherwise another benchmark would run for ten minutes."""
    with pytest.raises(KeyError, match="apend"):
        pick(["apend"], SOME)


def test_every_key_belongs_to_one_benchmark() -> None:
    """Programs find a figure by its key alone."""
    keys = [key for benchmark in BENCHMARKS.values() for key in benchmark.keys]
    assert len(set(keys)) == len(keys)
    assert all(name == benchmark.name for name, benchmark in BENCHMARKS.items())


def test_a_benchmark_that_returns_other_rows_is_refused(tmp_path: object) -> None:
    """A missing row would go unnoticed."""
    wrong = Benchmark("one", ("a", "b"), lambda *_: Result([Row("a", "", 1.0, "s")], []))
    with pytest.raises(ValueError, match="returned the rows"):
        wrong.run(tmp_path, 1.0)  # type: ignore[arg-type]
