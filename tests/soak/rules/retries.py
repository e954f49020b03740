"""Retries: a failed message comes again until its attempts are used up; then it is in the dead letters, once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.soak.facts import Facts
from tests.soak.group_events import DeadLetter, Handled

KILL = "kill"
Attempts = dict[tuple[str, str, int], list[Handled]]  # by group, content and attempt


def _attempts(facts: Facts) -> Attempts:
    attempts: defaultdict[tuple[str, str, int], list[Handled]] = defaultdict(list)
    for handled in facts.handled:
        attempts[handled.group, handled.message.content, handled.message.attempt].append(handled)
    return attempts


def _is_last(facts: Facts, handled: Handled) -> bool:
    subscription = facts.subscriptions.get(handled.group)
    return subscription is not None and handled.message.attempt + 1 >= subscription.max_attempts


def dropped(facts: Facts) -> Iterator[str]:
    """Report failed messages with attempts left that did not come again."""
    attempts = _attempts(facts)
    for (group, content, attempt), handled in attempts.items():
        failed = [one for one in handled if one.failed]
        if failed and not _is_last(facts, failed[0]) and (group, content, attempt + 1) not in attempts:
            at = f"{failed[0].at:.3f}"
            yield f"group {group}: attempt {attempt + 1} of {content} failed at {at}, but it did not come again"


def unexplained(facts: Facts) -> Iterator[str]:
    """Report attempts that no failure before them explains."""
    attempts = _attempts(facts)
    for (group, content, attempt), handled in attempts.items():
        before = attempts.get((group, content, attempt - 1), ())
        if attempt and not any(one.failed and one.at <= handled[0].at for one in before):
            yield f"group {group}: {content} came for attempt {attempt + 1}, but attempt {attempt} had not failed"


def dead_letter_missing(facts: Facts) -> Iterator[str]:
    """Report messages whose last attempt failed and which are not in the dead letters."""
    dead = {(letter.group, letter.message.content) for letter in facts.dead_letters}
    for handled in facts.handled:
        if handled.failed and _is_last(facts, handled) and (handled.group, handled.message.content) not in dead:
            yield (
                f"group {handled.group}: the last attempt of {handled.message.content} failed at {handled.at:.3f}, and "
                f"%DLQ%{handled.group} does not have it"
            )


def dead_letter_wrong(facts: Facts) -> Iterator[str]:
    """Report dead letters without a failed last attempt, and repeated ones that no kill or message id explains."""
    last = {(one.group, one.message.content) for one in facts.handled if one.failed and _is_last(facts, one)}
    letters: defaultdict[tuple[str, str], list[DeadLetter]] = defaultdict(list)
    for letter in facts.dead_letters:
        letters[letter.group, letter.message.content].append(letter)
    was_killed = any(fault.action == KILL for fault in facts.faults)
    for (group, content), copies in letters.items():
        ids = {letter.message.message_id for letter in copies}
        if (group, content) not in last:
            yield f"%DLQ%{group} has {content}, whose last attempt did not fail"
        if len(copies) > 1 and (not was_killed or len(ids) > 1):
            yield f"%DLQ%{group} has {content} {len(copies)} times, with the message ids {sorted(ids)}"
