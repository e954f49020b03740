"""Answers that nothing done here explains: of damage, say, or that a cursor which was given is none."""

from __future__ import annotations

from collections.abc import Iterator

from tests.soak.facts import Facts
from tests.soak.history import NOT_FOUND, NOT_YET_VISIBLE, OK, REFUSED, UNAVAILABLE

EXPECTED_ANSWERS = frozenset({OK, UNAVAILABLE, NOT_FOUND, NOT_YET_VISIBLE})
EXPECTED_REFUSALS = frozenset({"NEXT_OFFSET_MISMATCH"})


def surprises(facts: Facts) -> Iterator[str]:
    """Reasons that are not expected, skipped records, a service that ended by itself."""
    for answer in facts.answers:
        if answer.outcome not in EXPECTED_ANSWERS or (answer.outcome == NOT_FOUND and answer.kind != "by_id"):
            where = f"{answer.topic}/{answer.queue_id} from {answer.requested_offset}"
            yield f"{answer.client} ({answer.kind}, {where}) at {answer.completed:.3f}: {answer.outcome}"
        if answer.skipped:
            yield f"{answer.client} ({answer.kind}): {answer.skipped} records were left out as damaged"
    for append in facts.appends:
        if append.outcome == REFUSED and append.reason not in EXPECTED_REFUSALS:
            yield f"{append.client}: {append.contents[0]} was refused: {append.reason}"
    for fault in facts.faults:
        if fault.action == "ended":
            yield f"{', '.join(fault.targets)} ended by itself at {fault.at:.3f}: {fault.detail}"
