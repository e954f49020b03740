"""Ratios of the benchmark guard."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from benchmarks.check import Figure, compare, machine_speed, read_figures


def _figure(value: float, machine: float, unit: str = "msg/s") -> Figure:
    return Figure(value, unit, ("python",), machine)


@pytest.mark.parametrize(
    ("committed", "now", "speed", "verdict"),
    [
        (_figure(100, 10), _figure(50, 5), 1.0, ""),  # half the machine speed, half the rate
        (_figure(100, 10), _figure(71, 10), 0.71, ""),
        (_figure(100, 10), _figure(69, 10), 0.69, "slower"),
        (_figure(100, 10), _figure(69, 20), 0.345, "slower"),
        (_figure(100, 10), _figure(150, 10), 1.5, "faster: write the figures again"),
        (_figure(4, 10, "ms"), _figure(8, 5, "ms"), 1.0, ""),  # half the machine speed, twice the time
        (_figure(4, 10, "ms"), _figure(8, 10, "ms"), 0.5, "slower"),
    ],
)
def test_the_compared_speed_is_corrected_for_the_machine(
    committed: Figure, now: Figure, speed: float, verdict: str
) -> None:
    """With the machine's speed, rates rise and times fall."""
    compared = compare("row", committed, now)
    assert compared.speed == pytest.approx(speed)
    assert compared.verdict == verdict


def test_figures_scaled_by_another_loop_are_not_compared() -> None:
    """The row is scaled with another loop than before."""
    with pytest.raises(ValueError, match="write the figures again"):
        compare("row", _figure(1, 1), Figure(1, "msg/s", ("memcpy",), 1))


def test_machine_speed_is_the_geometric_mean_over_before_and_after() -> None:
    """Only the loops that a row names count."""
    before, after = {"python": 10.0, "memcpy": 2.0, "crc": 99.0}, {"python": 6.0, "memcpy": 2.0, "crc": 1.0}
    assert machine_speed(("python", "memcpy"), before, after) == pytest.approx(4.0)


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    """There are none before the first commit of figures."""
    path = tmp_path / "figures.json"
    assert read_figures(path) == {}
    path.write_bytes(orjson.dumps({"figures": {"row": _figure(3, 2)._asdict()}}))
    assert read_figures(path) == {"row": _figure(3, 2)}
