"""A fuzz target: a hypothesis test that continues with new examples until its share of the time is over.

`make fuzz` sets FUZZ_SECONDS, the time of all targets together. Without it a target tries a few fixed examples, so that
it stays in working order between two runs.
"""

from __future__ import annotations

import functools
import inspect
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

_PHASES = (Phase.explicit, Phase.generate, Phase.target, Phase.shrink)  # without `explain`, which takes long


@dataclass
class Run:
    """The parameters of this run. share_s: of each target; 0 for the few fixed examples."""

    seconds: float
    seed: int
    share_s: float = 0.0

    def share_among(self, targets: int) -> None:
        """Divide the time among *targets* targets."""
        self.share_s = self.seconds / max(targets, 1)


RUN = Run(float(os.environ.get("FUZZ_SECONDS") or 0), int(os.environ.get("FUZZ_SEED") or random.getrandbits(32)))
_lines: list[str] = []


def told() -> list[str]:
    """Return one line per finished target: the number of its examples."""
    return _lines


def fuzz(*, few: int = 30, at_once: int = 200, **strategies: SearchStrategy[Any]) -> Callable[[Any], Any]:
    """Decorate a test of (fixtures, and an argument for each of *strategies*).

    few      examples without FUZZ_SECONDS
    at_once  examples between two reads of the clock; each such round starts with its own seed
    """

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(check)
        def run(*arguments: Any, **fixtures: Any) -> None:
            if RUN.share_s:
                _run_for_a_share(check, strategies, at_once, *arguments, **fixtures)
            else:
                _settled(few, derandomize=True)(given(**strategies)(check))(*arguments, **fixtures)

        signature = inspect.signature(check)
        kept = [one for name, one in signature.parameters.items() if name not in strategies]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # pytest looks for fixtures
        return run

    return decorate


def _settled(examples: int, *, derandomize: bool) -> settings:
    return settings(
        max_examples=examples,
        derandomize=derandomize,
        database=None,
        deadline=None,
        phases=_PHASES,
        suppress_health_check=list(HealthCheck),
    )


def _run_for_a_share(
    check: Callable[..., None],
    strategies: dict[str, SearchStrategy[Any]],
    at_once: int,
    *arguments: Any,
    **fixtures: Any,
) -> None:
    until, seen = time.monotonic() + RUN.share_s, 0

    @functools.wraps(check)
    def counted(*drawn: Any, **named: Any) -> None:
        nonlocal seen
        seen += 1
        check(*drawn, **named)

    number = RUN.seed
    try:
        while time.monotonic() < until:
            one_round = given(**strategies)(counted)
            seed(number)(_settled(at_once, derandomize=False)(one_round))(*arguments, **fixtures)
            number += 1
    finally:
        _lines.append(f"{check.__module__.rpartition('.')[2]}::{check.__name__}: {seen:,} examples")
