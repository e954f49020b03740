"""Planted violations: functions that make a history in which one promise is broken."""

from __future__ import annotations

from collections.abc import Callable

from tests.soak.facts import Queue
from tests.soak.history import NOT_FOUND, NOT_YET_VISIBLE, REFUSED, UNKNOWN, Answer, Append, Fault, Operation
from tests.unit.soak.simulated import RECORD_SIZE, Simulated, spoiled

NO_ANSWER = {"outcome": UNKNOWN, "completed": None, "queue_offset": None}
Plant = Callable[[Simulated], list[Operation]]
PLANTS: dict[Plant, str] = {}


def breaks(rule: str) -> Callable[[Plant], Plant]:
    """Register a function that makes a history which breaks *rule* and no other."""

    def register(plant: Plant) -> Plant:
        PLANTS[plant] = rule
        return plant

    return register


def final_pull(history: list[Operation], queue_id: int = 0) -> Answer:
    """Return the last reading of a short queue."""
    pulls = [one for one in history if isinstance(one, Answer) and one.final and one.queue_id == queue_id]
    return pulls[-1]


def with_seen(history: list[Operation], answer: Answer, index: int, **changes: object) -> list[Operation]:
    """Return *history* with one message of *answer* changed."""
    seen = list(answer.seen)
    seen[index] = seen[index]._replace(**changes)  # type: ignore[arg-type]
    return spoiled(history, answer, seen=tuple(seen))


@breaks("lost")
def acknowledged_and_gone(service: Simulated) -> list[Operation]:
    service.append()
    history = service.finish()
    service.append()
    return history


@breaks("doubled")
def a_repeat_stored_again(service: Simulated) -> list[Operation]:
    first = service.append()
    service.store(Queue(first.topic, first.queue_id), first.contents)
    return service.finish()


@breaks("misplaced")
def acknowledged_at_anothers_place(service: Simulated) -> list[Operation]:
    one, other = service.append(late=3), service.append(early=3)
    history = service.finish()
    places = ("queue_offset", "physical_offsets", "end_physical_offset", "store_ms")
    history = spoiled(history, one, **{name: getattr(other, name) for name in places})
    return spoiled(history, other, **{name: getattr(one, name) for name in places})


@breaks("misplaced")
def another_store_time_than_acknowledged(service: Simulated) -> list[Operation]:
    append = service.append()
    return spoiled(service.finish(), append, store_ms=(append.store_ms or 0) + 1)


@breaks("misplaced")
def one_offset_acknowledged_twice(service: Simulated) -> list[Operation]:
    first = service.append(late=3)
    second = service.append(early=3)
    return spoiled(service.finish(), second, queue_offset=first.queue_offset)


@breaks("phantom")
def never_sent(service: Simulated) -> list[Operation]:
    service.append()
    second = service.append()
    return [one for one in service.finish() if one is not second]


@breaks("phantom")
def refused_and_there(service: Simulated) -> list[Operation]:
    append = service.append()
    changes = {"outcome": REFUSED, "reason": "NEXT_OFFSET_MISMATCH", "queue_offset": None}
    return spoiled(service.finish(), append, **changes)


@breaks("phantom")
def sent_to_another_queue(service: Simulated) -> list[Operation]:
    append = service.append(queue_id=1, topic="orders")
    return spoiled(service.finish(), append, topic="bundles")


@breaks("changed")
def an_offset_shows_something_else_later(service: Simulated) -> list[Operation]:
    """Show two messages at one offset; neither append was answered."""
    first = service.append()
    service.publish()
    service.pull()
    service.queues[Queue(first.topic, first.queue_id)].clear()
    second = service.append()
    history = spoiled(service.finish(), first, **NO_ANSWER)
    return spoiled(history, second, **NO_ANSWER)


@breaks("changed")
def an_offset_has_another_store_time_later(service: Simulated) -> list[Operation]:
    append = service.append()
    service.publish()
    pull = service.pull()
    history = with_seen(service.finish(), pull, 0, store_ms=1)
    return spoiled(history, append, **NO_ANSWER)


@breaks("shown above the watermark")
def a_message_above_the_watermark(service: Simulated) -> list[Operation]:
    service.append()
    service.publish()
    pull = service.pull()
    return spoiled(service.finish(), pull, watermark=RECORD_SIZE - 1, committed=RECORD_SIZE)


@breaks("shown above the watermark")
def a_watermark_above_what_is_committed(service: Simulated) -> list[Operation]:
    service.append(late=9)
    service.publish()
    bounds = service.bounds()
    return spoiled(service.finish(), bounds, committed=RECORD_SIZE - 1)


@breaks("hidden")
def covered_by_the_watermark_and_not_there(service: Simulated) -> list[Operation]:
    service.append()
    service.publish()
    bounds = service.bounds()
    return spoiled(service.finish(), bounds, max_offset=0)


@breaks("reordered")
def answered_before_the_other_was_sent(service: Simulated) -> list[Operation]:
    first = service.append()
    second = service.append()
    history = service.finish()
    history = spoiled(history, first, invoked=service.clock, completed=service.clock + 1)
    return spoiled(history, next(one for one in history if _is(one, second)), completed=second.completed)


def _is(one: Operation, append: Append) -> bool:
    return isinstance(one, Append) and one.contents == append.contents


@breaks("reordered")
def one_producers_sends_in_another_order(service: Simulated) -> list[Operation]:
    service.append(sequence=2, late=5)
    service.append(sequence=1, early=5)
    return service.finish()


@breaks("compare-and-append")
def stored_elsewhere_than_expected(service: Simulated) -> list[Operation]:
    service.append()
    service.append(expected_next_offset=0)
    return service.finish()


@breaks("compare-and-append")
def refused_although_it_was_right(service: Simulated) -> list[Operation]:
    service.append()
    refused = service.refuse()
    return spoiled(service.finish(), refused, actual_next_offset=0)


@breaks("hole")
def a_pull_passes_over_an_offset(service: Simulated) -> list[Operation]:
    service.append(count=3)
    service.publish()
    pull = service.pull()
    return spoiled(service.finish(), pull, seen=(pull.seen[0], pull.seen[2]))


@breaks("hole")
def nothing_at_an_offset_at_the_end(service: Simulated) -> list[Operation]:
    """Let a refused message use up an offset."""
    service.append()
    used_up = service.append()
    service.append()
    history = service.finish()
    pull = final_pull(history)
    history = spoiled(history, pull, kind="records", seen=(pull.seen[0], pull.seen[2]))
    return [one for one in history if one is not used_up]


@breaks("torn batch")
def half_a_batch(service: Simulated) -> list[Operation]:
    append = service.append(count=2)
    history = service.finish()
    pull = final_pull(history)
    history = spoiled(history, pull, seen=pull.seen[:1], next_offset=1, max_offset=1)
    return spoiled(history, append, **NO_ANSWER)


@breaks("torn batch")
def a_batch_with_two_store_times(service: Simulated) -> list[Operation]:
    append = service.append(count=2)
    history = service.finish()
    history = with_seen(history, final_pull(history), 1, store_ms=2000)
    return spoiled(history, append, **NO_ANSWER)


@breaks("watermark going back")
def a_lower_watermark_later(service: Simulated) -> list[Operation]:
    service.append()
    service.append()
    service.publish()
    service.bounds(queue_id=7)
    later = service.bounds(queue_id=7)
    return spoiled(service.finish(), later, watermark=RECORD_SIZE)


@breaks("watermark going back")
def an_older_term_later(service: Simulated) -> list[Operation]:
    service.bounds()
    later = service.bounds()
    return spoiled(service.finish(), later, term=0)


@breaks("committed behind acknowledged")
def acknowledged_and_not_committed(service: Simulated) -> list[Operation]:
    service.append()
    answer = service.bounds()
    return spoiled(service.finish(), answer, committed=0)


@breaks("bounds going back")
def a_lower_end_later(service: Simulated) -> list[Operation]:
    """Lower the end in an answer without a watermark; with one, it would also be `hidden`."""
    service.append()
    service.publish()
    service.bounds()
    later = service.bounds()
    return spoiled(service.finish(), later, max_offset=0, watermark=None, committed=None)


@breaks("not found")
def an_acknowledged_id_does_not_exist(service: Simulated) -> list[Operation]:
    append = service.append()
    answer = service.by_id(append)
    return spoiled(service.finish(), answer, outcome=NOT_FOUND)


@breaks("not found")
def not_visible_any_more(service: Simulated) -> list[Operation]:
    append = service.append()
    service.publish()
    service.bounds()
    answer = service.by_id(append)
    changes = {"outcome": NOT_YET_VISIBLE, "seen": (), "watermark": None, "committed": None, "term": None}
    return spoiled(service.finish(), answer, **changes)


@breaks("missed by key")
def a_visible_key_is_not_found(service: Simulated) -> list[Operation]:
    append = service.append()
    service.publish()
    answer = service.by_key(append)
    return spoiled(service.finish(), answer, seen=())


@breaks("offset by time")
def not_the_boundary(service: Simulated) -> list[Operation]:
    first = service.append()
    service.append()
    service.publish()
    answer = service.offset_at(first.store_ms or 0, "lower")
    return spoiled(service.finish(), answer, offset=1)


@breaks("offset by time")
def store_times_that_fall(service: Simulated) -> list[Operation]:
    service.append()
    service.clock -= 2
    service.append(early=-2, late=3)
    service.clock += 3
    return service.finish()


@breaks("surprise")
def a_service_that_reports_damage(service: Simulated) -> list[Operation]:
    service.append()
    answer = service.bounds()
    return spoiled(service.finish(), answer, outcome="CORRUPT_MESSAGE")


@breaks("surprise")
def a_cursor_that_is_none(service: Simulated) -> list[Operation]:
    answer = service.bounds()
    return spoiled(service.finish(), answer, outcome="OFFSET_OUT_OF_RANGE")


@breaks("surprise")
def a_record_left_out(service: Simulated) -> list[Operation]:
    answer = service.bounds()
    return spoiled(service.finish(), answer, skipped=1)


@breaks("surprise")
def a_repeat_called_a_conflict(service: Simulated) -> list[Operation]:
    refused = service.refuse()
    return spoiled(service.finish(), refused, reason="REQUEST_ID_CONFLICT")


@breaks("surprise")
def a_service_that_ends_by_itself(service: Simulated) -> list[Operation]:
    return [*service.finish(), Fault(("writer",), "kill", 1.0), Fault(("writer",), "ended", 2.0, "exit status 1")]
