"""The judge of power cuts: each broken promise is reported, and losses that a mode allows are not."""

from __future__ import annotations

from tests.power.judge import ASYNC, SYNC, Knowledge, Known, Place, forget, losses, violations

CUT_AT, WINDOW_S = 100.0, 1.5
PLACES = [Place("simple", 0, i) for i in range(4)]
STORED = {place: f"m{i}" for i, place in enumerate(PLACES)}


def knowledge(*ages: float) -> Knowledge:
    """Return a state in which m0, m1, … were acknowledged and read these numbers of seconds before the cut."""
    known = {place: Known(f"m{i}", CUT_AT - age) for i, (place, age) in enumerate(zip(PLACES, ages, strict=False))}
    return Knowledge({f"m{i}" for i in range(10)}, dict(known), dict(known))


def found(mode: str, known: Knowledge, stored: dict[Place, str]) -> list[str]:
    lost = losses(known, stored)
    return list(violations(mode, known, lost, stored, cut_at=CUT_AT, window_s=WINDOW_S))


def test_everything_acknowledged_is_stored() -> None:
    assert found(SYNC, knowledge(3, 2, 1, 0.001), STORED) == []


def test_sync_may_lose_nothing_that_was_acknowledged_before_the_cut() -> None:
    stored = dict(list(STORED.items())[:3])
    texts = found(SYNC, knowledge(3, 2, 1, 0.001), stored)
    assert len(texts) == 2
    assert texts[0].startswith("1 acknowledged messages are lost, 0.001 to 0.001 s before the cut: m3")
    assert texts[1].startswith("1 read messages are lost")


def test_an_answer_after_the_cut_is_not_counted() -> None:
    assert found(SYNC, knowledge(3, 2, 1, -0.01), dict(list(STORED.items())[:3])) == []


def test_async_may_lose_the_end_within_its_window() -> None:
    assert found(ASYNC, knowledge(3, 2, 1.4, 0.5), dict(list(STORED.items())[:2])) == []


def test_async_may_not_lose_older_messages() -> None:
    texts = found(ASYNC, knowledge(3, 1.6, 1.4, 0.5), dict(list(STORED.items())[:1]))
    assert any(text.startswith("1 acknowledged messages are lost, 1.600") for text in texts)


def test_another_message_at_an_acknowledged_offset_is_a_loss() -> None:
    assert len(found(SYNC, knowledge(3, 2), {**STORED, PLACES[1]: "m7"})) == 2


def test_a_message_that_was_never_sent_is_reported() -> None:
    texts = found(SYNC, knowledge(3), {PLACES[0]: "m0", PLACES[1]: "other"})
    assert texts == [f"{PLACES[1]} has other, which was never sent"]


def test_a_message_that_is_stored_twice_is_reported() -> None:
    assert found(SYNC, knowledge(3), {PLACES[0]: "m0", PLACES[1]: "m0"}) == ["m0 is stored 2 times"]


def test_a_hole_is_reported() -> None:
    assert found(SYNC, knowledge(3), {PLACES[0]: "m0", PLACES[2]: "m2"}) == ["simple/0 has 2 messages, but none at [1]"]


def test_a_lost_offset_may_be_reused() -> None:
    known = knowledge(3, 2, 1.4, 0.5)
    stored = dict(list(STORED.items())[:2])
    forget(known, losses(known, stored))
    later = {**stored, PLACES[2]: "m8"}
    assert found(ASYNC, known, later) == []
