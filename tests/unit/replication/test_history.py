"""The judge of the nemesis finds each kind of damage."""

from __future__ import annotations

import pytest

from tests.replication.nemesis.history import History, Outcome, Place, Read, Sent, findings

A, B, C = (("t", 0, offset) for offset in range(3))
OK, REFUSED, OPEN = Outcome.ACKNOWLEDGED, Outcome.REFUSED, Outcome.OPEN


def history(*events: Sent | Read) -> History:
    made = History()
    made.add(*events)
    return made


GOOD = history(
    Sent("a", 0, 1, OK, A),
    Sent("b", 2, 3, OK, B),
    Sent("r", 2, 3, REFUSED),
    Sent("o", 2, 9, OPEN),
    Read("m", "a", A),
    Read("m", "o", C),
)


def test_a_right_history_has_no_findings() -> None:
    assert findings(GOOD, [("a", A), ("b", B), ("o", C)]) == []
    assert findings(history(Sent("o", 0, 1, OPEN)), []) == []


@pytest.mark.parametrize(
    ("made", "stored", "expected"),
    [
        (history(Sent("a", 0, 1, OK, A)), [], "lost"),
        (history(Sent("a", 0, 1, OK, A)), [("a", B)], "moved"),
        (history(Sent("a", 0, 1, OPEN)), [("a", A), ("a", B)], "doubled"),
        (history(Sent("a", 0, 1, REFUSED)), [("a", A)], "refused yet stored"),
        (history(), [("x", A)], "phantom"),
        (history(Sent("a", 0, 1, OK, B), Sent("b", 2, 3, OK, A)), [("a", B), ("b", A)], "reordered"),
        (history(Read("m", "a", A), Sent("a", 0, 1, OPEN)), [], "read and gone"),
        (history(Sent("a", 0, 1, OK, A), Sent("b", 0, 1, OK, A)), [("a", A), ("b", A)], "two messages"),
    ],
)
def test_each_kind_of_damage_is_found(made: History, stored: list[tuple[str, Place]], expected: str) -> None:
    assert any(finding.startswith(expected) for finding in findings(made, stored))


def test_messages_that_were_sent_at_the_same_time_have_any_order() -> None:
    made = history(Sent("a", 0, 5, OK, B), Sent("b", 2, 3, OK, A))
    assert findings(made, [("a", B), ("b", A)]) == []
