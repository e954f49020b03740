"""The watermark, the committed offset and the term only rise; acknowledged messages stay committed.

Processes are killed here, the machine is not: all writes are still there, so nothing goes back, not even when a term of
the writer ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.soak.facts import Facts
from tests.soak.history import Answer, Append
from tests.soak.rules.real_time import ObservedValue, regressions


def going_back(facts: Facts) -> Iterator[str]:
    """Report a decrease of watermark, committed offset or term between two consecutive answers to any clients."""
    for name in ("watermark", "committed", "term"):
        for earlier, later in regressions(_observed_values(facts.right, name)):
            yield (
                f"{name} {earlier.value} (term {earlier.source.term}) was returned to {earlier.source.client} at "
                f"{earlier.completed:.3f}, {later.value} (term {later.source.term}) to {later.source.client}, which "
                f"asked at {later.invoked:.3f}"
            )


def _observed_values(answers: Iterable[Answer], name: str) -> Iterator[ObservedValue[Answer]]:
    for answer in answers:
        value = getattr(answer, name)
        if value is not None:
            yield ObservedValue(answer.invoked, answer.completed, value, answer)


def below_acknowledged(facts: Facts) -> Iterator[str]:
    """Report a committed offset that does not cover an earlier acknowledged message, whatever has been killed since."""
    acknowledged: list[ObservedValue[Append | Answer]] = [
        ObservedValue(append.invoked, append.completed, append.end_physical_offset, append)
        for append in facts.acknowledged
        if append.completed is not None and append.end_physical_offset is not None
    ]
    observed: list[ObservedValue[Append | Answer]] = [
        ObservedValue(answer.invoked, answer.completed, answer.committed, answer)
        for answer in facts.right
        if answer.committed is not None
    ]
    for earlier, later in regressions([*acknowledged, *observed]):
        if isinstance(earlier.source, Append) and isinstance(later.source, Answer):
            yield (
                f"{earlier.source.contents[0]}, which ends at {earlier.value}, was acknowledged at "
                f"{earlier.completed:.3f}; {later.source.client} asked at {later.invoked:.3f} and got the answer that "
                f"{later.value} is committed (term {later.source.term})"
            )
