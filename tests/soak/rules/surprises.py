"""Answers that no planned fault explains, for example of damage, or the refusal of a valid cursor."""

from __future__ import annotations

from collections.abc import Iterator

from tests.soak.facts import Facts
from tests.soak.history import NOT_FOUND, NOT_YET_VISIBLE, OK, REFUSED, UNAVAILABLE
from tidemark.errors import RejectedError, UnavailableError
from tidemark.status import BY_REASON

EXPECTED_ANSWERS = frozenset({OK, UNAVAILABLE, NOT_FOUND, NOT_YET_VISIBLE})
EXPECTED_REFUSALS = frozenset({"NEXT_OFFSET_MISMATCH"})
DELETED_TOPIC = frozenset({"TOPIC_NOT_FOUND", "OFFSET_TOO_SMALL"})  # answers for a topic that was deleted meanwhile
EXPECTED_OF_MEMBERS = frozenset({"GENERATION_STALE", "MEMBER_FENCED"})


def surprises(facts: Facts) -> Iterator[str]:
    """Report unexpected reasons, skipped records, and a service that ended spontaneously."""
    yield from _of_members(facts)
    for answer in facts.answers:
        if answer.topic in facts.churned and answer.outcome in DELETED_TOPIC:
            continue
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


def _of_members(facts: Facts) -> Iterator[str]:
    """Report errors of the consumers, except for a service that is away, or a churned topic that is missing."""
    for error in facts.client_errors:
        subscription = facts.subscriptions.get(error.group)
        is_churned = subscription is not None and not facts.churned.isdisjoint(subscription.topics)
        expected = EXPECTED_OF_MEMBERS | (DELETED_TOPIC if is_churned else frozenset())
        if error.reason not in expected and not _is_unavailable(error.reason):
            yield f"{error.client} ({error.group}) at {error.at:.3f} raised {error.reason}: {error.text}"


def _is_unavailable(reason: str) -> bool:
    return issubclass(BY_REASON.get(reason, RejectedError), UnavailableError)
