"""A fuzz target: a hypothesis test that goes on, with new examples, until its share of the time is over.

`make fuzz` sets FUZZ_SECONDS, the time of all targets together. Without it a target looks at a few examples, always the
same ones, so that it does not rot between two runs.
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
    """What this run was asked for. share_s: of each target; 0 for the few examples that are always the same."""

    seconds: float
    seed: int
    share_s: float = 0.0

    def share_among(self, targets: int) -> None:
        """So many targets run."""
        self.share_s = self.seconds / max(targets, 1)


RUN = Run(float(os.environ.get("FUZZ_SECONDS") or 0), int(os.environ.get("FUZZ_SEED") or random.getrandbits(32)))
_lines: list[str] = []


def told() -> list[str]:
    """A line a target that has had its share: how many examples it has seen."""
    return _lines


def fuzz(*, few: int = 30, at_once: int = 200, **strategies: SearchStrategy[Any]) -> Callable[[Any], Any]:
    """Decorates a test of (fixtures, and an argument for each of *strategies*).

    few      examples without FUZZ_SECONDS
    at_once  examples between two looks at the clock; each such round begins anew from a seed of its own
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
