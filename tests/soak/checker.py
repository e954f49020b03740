"""The judge: the promises that a history breaks. A pure function of the history; the rules are independent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from tests.soak.facts import Facts, Violation
from tests.soak.history import Operation
from tests.soak.rules import (
    batches,
    bounds,
    groups,
    lookups,
    order,
    places,
    reads,
    recreated,
    retries,
    surprises,
    times,
    watermark,
)

Rule = Callable[[Facts], Iterator[str]]
RULES: dict[str, Rule] = {
    "lost": places.lost,
    "doubled": places.doubled,
    "misplaced": places.misplaced,
    "phantom": reads.phantom,
    "changed": reads.changed,
    "shown above the watermark": reads.above_the_watermark,
    "hidden": reads.hidden,
    "reordered": order.reordered,
    "compare-and-append": order.compare_and_append,
    "hole": batches.holes,
    "torn batch": batches.torn,
    "watermark going back": watermark.going_back,
    "committed behind acknowledged": watermark.below_acknowledged,
    "bounds going back": bounds.going_back,
    "not found": lookups.not_found,
    "missed by key": lookups.missed_by_key,
    "offset by time": times.offset_by_time,
    "never handed out": groups.never_handed_out,
    "invented": groups.invented,
    "committed ahead": groups.committed_ahead,
    "group order": groups.out_of_order,
    "retry dropped": retries.dropped,
    "retry unexplained": retries.unexplained,
    "dead letter missing": retries.dead_letter_missing,
    "dead letter wrong": retries.dead_letter_wrong,
    "shown after deletion": recreated.shown_after_deletion,
    "old after new": recreated.handed_out_after_newer,
    "surprise": surprises.surprises,
}
# rules that hold only after a sufficient drain
DRAINED = ("never handed out", "retry dropped", "dead letter missing")
MOST_A_RULE = 20  # reported of one rule


def check(history: Iterable[Operation]) -> list[Violation]:
    """Return all violations, at most MOST_A_RULE of a rule."""
    return check_facts(Facts(history))


def check_facts(facts: Facts) -> list[Violation]:
    """Return the same as `check`, for already collected facts."""
    return [Violation(name, text) for name, rule in RULES.items() for text in islice(rule(facts), MOST_A_RULE)]
