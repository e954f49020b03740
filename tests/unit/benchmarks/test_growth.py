"""The rows of the benchmark of many messages, and its demand for space."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rows.growth import BENCHMARKS, FIGURES, Store, require_space, rows_of


def test_missing_space_is_reported_before_a_store_is_made(tmp_path: Path) -> None:
    """Otherwise the disk would be full after minutes. The message names what helps."""
    with pytest.raises(RuntimeError, match=r"need 320000000 GB, but .* GB free: .*BENCH_FOLDER.*BENCH_SCALE"):
        require_space(tmp_path, 10**15)
    require_space(tmp_path, 1)


def test_each_figure_has_a_ratio_of_the_large_store_to_the_small_one(tmp_path: Path) -> None:
    stores = {
        "small": Store(tmp_path / "small", 1000, 250_000),
        "large": Store(tmp_path / "large", 3000, (1 << 30) + 2_000_000),
    }
    for store in stores.values():
        (store.data / "index").mkdir(parents=True)
    figures = {figure: {"small": 2.0 + number, "large": 5.0} for number, figure in enumerate(FIGURES)}
    rows = {row.key: row for row in rows_of(figures, stores)}
    assert tuple(rows) == BENCHMARKS[0].keys
    assert rows["growth_ratio_start_pull"].value == 2.5
    assert [row.key for row in rows.values() if row.target] == [f"growth_ratio_{figure}" for figure in FIGURES]
    assert "0 key index files, the last log file 2 MB full" in rows["growth_large_key_ms"].note
    assert rows["growth_ratio_key"].note == "3,000 messages relative to 1,000"
