"""Counts of the rounds, for the summary at the end of the run."""

from __future__ import annotations

from collections import Counter

COUNTS: Counter[str] = Counter()
SEEDS: list[str] = []
