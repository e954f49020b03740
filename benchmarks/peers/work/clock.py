"""The duration of a load: a warm-up, in which the JVM compiles and which does not count, and the measured time."""

from __future__ import annotations

WARM_S, LEAST_WARM_S = 10.0, 5.0
MEASURED_S, LEAST_MEASURED_S = 12.0, 3.0


def clock(scale: float, measured_s: float = MEASURED_S) -> dict[str, float]:
    """Return the settings of a load program. A longer run does not need a longer warm-up."""
    return {
        "warm_s": max(LEAST_WARM_S, WARM_S * min(scale, 1.0)),
        "measured_s": max(LEAST_MEASURED_S, measured_s * scale),
    }
