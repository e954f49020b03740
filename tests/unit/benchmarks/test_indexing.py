"""The speed of a build, from observed marks."""

from __future__ import annotations

import pytest

from benchmarks.indexing import Indexing, Mark, summarise


def test_a_build_counts_from_the_first_chunk_to_the_last_mark() -> None:
    """Neither the first chunk's bytes nor the time before it count."""
    trail = [
        Mark(0.0, 0, 0, 0),
        Mark(7.0, 0, 10, 0),
        Mark(7.5, 10, 60, 0),
        Mark(9.0, 100, 100, 10),
        Mark(9.5, 100, 100, 100),
    ]
    assert summarise(trail, 12.0) == Indexing(100, 90, 2.0, 2.5, 12.0)


def test_a_rebuild_does_not_count_what_was_built_before() -> None:
    """Its marks begin at the end and are then reset."""
    before = [Mark(0.0, 100, 100, 100), Mark(1.0, 0, 100, 0), Mark(1.1, 0, 0, 0)]
    trail = [*before, Mark(8.0, 0, 20, 0), Mark(10.0, 100, 100, 100)]
    assert summarise(trail, 11.0) == Indexing(100, 80, 2.0, 2.0, 11.0)


@pytest.mark.parametrize("trail", [[], [Mark(0.0, 0, 0, 0)], [Mark(0.0, 0, 0, 0), Mark(1.0, 90, 100, 90)]])
def test_a_build_that_reached_no_end_has_no_figure(trail: list[Mark]) -> None:
    """One shard is slower than the others, or there are no marks."""
    with pytest.raises(ValueError, match="marks end"):
        summarise(trail, 1.0)
