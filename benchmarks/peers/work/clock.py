"""How long a load runs: first its warm-up, in which the peer's compilers get to work and nothing counts."""

from __future__ import annotations

WARM_S, LEAST_WARM_S = 10.0, 5.0
MEASURED_S, LEAST_MEASURED_S = 12.0, 3.0


def clock(scale: float, measured_s: float = MEASURED_S) -> dict[str, object]:
    """Settings of a load program. The warm-up never grows: a longer run does not need more of it."""
    return {
        "warm_s": max(LEAST_WARM_S, WARM_S * min(scale, 1.0)),
        "measured_s": max(LEAST_MEASURED_S, measured_s * scale),
    }
