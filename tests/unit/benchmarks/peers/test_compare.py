"""Medians, ratios and goals."""

from __future__ import annotations

import pytest

from benchmarks.peers.compare import Pair, Spread, compare, spread
from benchmarks.peers.figures import OURS, OURS_GRPC, Figure
from benchmarks.peers.goals import Better, Limit
from benchmarks.peers.python.systems import BEST
from benchmarks.peers.toolchain import KAFKA, ROCKETMQ

from .stand_ins import goal, pair


def test_a_spread_is_median_least_and_greatest() -> None:
    """The order of the values does not matter; an even count takes the mean of the two middle values."""
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert spread([4.0, 1.0, 2.0, 3.0]) == Spread(2.5, 1.0, 4.0)
    with pytest.raises(ValueError, match="at least one value"):
        spread([])


def test_ratios_are_taken_within_pairs() -> None:
    """If the machine has half its speed for one pair, the ratio stays, though both medians change."""
    comparison = compare(goal(), [pair(300, 100), pair(150, 50), pair(600, 200)])
    assert comparison.ratio == Spread(3.0, 3.0, 3.0)
    assert comparison.figures == {OURS: 300, ROCKETMQ.name: 100}
    assert (comparison.unit, comparison.pairs) == ("msg/s", 3)


def test_the_median_ratio_decides() -> None:
    """One pair below the goal does not decide; two of three do."""
    assert compare(goal(2.0), [pair(200, 100), pair(190, 100), pair(300, 100)]).met is True
    assert compare(goal(2.0), [pair(199, 100), pair(190, 100), pair(300, 100)]).met is False


def test_a_lower_ratio_meets_a_goal_for_latencies() -> None:
    """For latencies the ratio must not exceed the factor."""
    assert compare(goal(1.0, Better.LOWER), [pair(0.9, 1.0, unit="ms")] * 3).met is True
    assert compare(goal(1.0, Better.LOWER), [pair(1.0, 1.0, unit="ms")] * 3).met is True
    assert compare(goal(1.0, Better.LOWER), [pair(1.1, 1.0, unit="ms")] * 3).met is False


def test_a_goal_without_a_factor_has_a_ratio_and_no_verdict() -> None:
    """The row is shown, neither met nor missed."""
    comparison = compare(goal(None), [pair(50, 100)] * 3)
    assert comparison.met is None
    assert comparison.ratio.median == 0.5


def test_fewer_than_three_pairs_decide_nothing() -> None:
    """A ratio is shown, but one or two pairs may be chance."""
    comparison = compare(goal(2.0), [pair(300, 100)] * 2)
    assert (comparison.ratio.median, comparison.met) == (3.0, None)


def test_the_second_peer_is_shown_and_not_compared() -> None:
    """Its median is shown next to the others and does not enter the ratio."""
    comparison = compare(goal(), [pair(300, 100, 1000), pair(300, 100, 3000), pair(300, 100, 2000)])
    assert comparison.figures[KAFKA.name] == 2000
    assert comparison.ratio.median == 3.0


def test_compared_rows_may_have_different_keys() -> None:
    """Several of our rows are compared with one row of another system."""
    runs = {OURS: {"raw": Figure("raw", 8, "msg/s")}, ROCKETMQ.name: {"pull": Figure("pull", 2, "msg/s")}}
    assert compare(goal(key="raw", peer_key="pull"), [runs]).ratio.median == 4.0


def test_the_best_client_of_each_pair_is_compared() -> None:
    """Another client may be the best of the next pair; Tidemark's second wire is shown and is no peer."""

    def clients(ours: float, grpc: float, one: float, other: float) -> Pair:
        values = {OURS: ours, OURS_GRPC: grpc, "one": one, "other": other}
        return {system: {"send": Figure("send", value, "msg/s")} for system, value in values.items()}

    best = goal(1.0, key="send")._replace(product=BEST)
    pairs = [clients(100, 900, 50, 200), clients(100, 900, 400, 200), clients(100, 900, 100, 20)]
    assert compare(best, pairs).ratio == Spread(0.5, 0.25, 1.0)
    assert set(compare(best, pairs).figures) == {OURS, OURS_GRPC, "one", "other"}
    assert compare(best._replace(better=Better.LOWER), pairs).ratio == Spread(2.0, 0.5, 5.0)


def test_a_limit_decides_without_the_peer() -> None:
    """The median of Tidemark's own figures decides, and the ratio is only shown."""
    limited = goal(None, Better.LOWER)._replace(limit=Limit(120, "µs"))
    assert compare(limited, [pair(119, 1, unit="µs"), pair(500, 1, unit="µs"), pair(100, 1, unit="µs")]).met is True
    assert compare(limited, [pair(121, 900, unit="µs")] * 3).met is False


def test_missing_or_incompatible_figures_are_not_compared() -> None:
    """A missing figure, different units or a zero figure give no ratio."""
    with pytest.raises(KeyError):
        compare(goal(), [pair(1, 1), {OURS: {}, ROCKETMQ.name: {}}])
    mixed = {**pair(1, 1), OURS: {"append": Figure("append", 1, "MB/s")}}
    with pytest.raises(ValueError, match="one unit, got MB/s, msg/s"):
        compare(goal(), [mixed])
    with pytest.raises(ValueError, match="not above 0"):
        compare(goal(), [pair(1, 0)])
