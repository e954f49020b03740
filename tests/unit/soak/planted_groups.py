"""Planted violations of consumer groups: functions that make a history in which one promise is broken."""

from __future__ import annotations

from tests.soak.facts import Queue
from tests.soak.group_events import ClientError
from tests.soak.history import Fault, Operation
from tests.unit.soak.planted import breaks
from tests.unit.soak.simulated import Simulated, spoiled
from tests.unit.soak.simulated_groups import MAILING, SimulatedGroups


@breaks("never handed out")
def an_acknowledged_message_that_its_group_never_got(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append(count=2)
    groups.poll(most=1)
    return service.finish()


@breaks("never handed out")
def a_message_of_a_topic_that_was_created_again(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    groups.recreate()
    service.append("fleeting")
    return service.finish()


@breaks("never handed out")
def a_group_without_one_message(service: Simulated) -> list[Operation]:
    SimulatedGroups(service)
    service.append()
    return service.finish()


@breaks("invented")
def a_message_that_no_producer_sent(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append()
    delivery = groups.poll()
    invented = delivery.messages[0]._replace(content="m0/1", queue_offset=1)
    return spoiled(service.finish(), delivery, messages=(*delivery.messages, invented))


@breaks("invented")
def a_message_of_a_topic_that_the_group_did_not_name(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append("ledger")
    groups.poll("ledger")
    return service.finish()


@breaks("invented")
def a_message_of_another_queue(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append()
    delivery = groups.poll()
    elsewhere = delivery.messages[0]._replace(queue_id=1)
    return spoiled(service.finish(), delivery, messages=(elsewhere,))


@breaks("committed ahead")
def an_offset_beyond_the_next_message(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append(count=2)
    groups.poll(most=1)
    groups.commit(2)
    groups.poll()
    return service.finish()


@breaks("committed ahead")
def an_offset_beyond_the_end(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append()
    groups.poll()
    groups.commit(2)
    return service.finish()


@breaks("committed ahead")
def an_offset_beyond_a_message_still_in_progress(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service).with_handlers()
    first, second = service.append(), service.append()
    groups.poll()
    groups.handle(second.contents[0])
    groups.commit(2, MAILING)
    groups.handle(first.contents[0])
    return service.finish()


@breaks("committed ahead")
def a_retry_that_was_passed_over(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service).with_handlers()
    append = service.append()
    groups.poll()
    groups.commit(1, MAILING, f"%RETRY%{MAILING}")
    groups.handle(append.contents[0], failures=1)
    return service.finish()


@breaks("group order")
def a_message_after_the_next_one(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append(count=2)
    delivery = groups.poll()
    return spoiled(service.finish(), delivery, messages=delivery.messages[::-1])


@breaks("group order")
def a_message_from_before_a_seek(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append(count=3)
    groups.poll(most=2)
    groups.seek(0)
    groups.next["readers", Queue("orders", 0)] = 2
    groups.poll()
    return service.finish()


@breaks("group order")
def a_message_that_a_cancelled_call_kept(service: Simulated) -> list[Operation]:
    """Let another member get the message later, so that it is not lost."""
    groups = SimulatedGroups(service)
    service.append(count=3)
    groups.poll(most=1)
    groups.next["readers", Queue("orders", 0)] = 2
    groups.poll()
    groups.next["readers", Queue("orders", 0)] = 1
    groups.poll(client="reader.2")
    return service.finish()


@breaks("retry dropped")
def a_failed_message_that_never_comes_again(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service).with_handlers()
    append = service.append()
    groups.poll()
    handled = groups.handle(append.contents[0], failures=1)
    return [one for one in service.finish() if one is not handled[1]]


@breaks("retry unexplained")
def a_retry_of_a_message_that_was_handled(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service).with_handlers()
    append = service.append()
    groups.poll()
    handled = groups.handle(append.contents[0], failures=1)
    return spoiled(service.finish(), handled[0], failed=False)


@breaks("dead letter missing")
def a_message_that_failed_for_ever_and_is_gone(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service).with_handlers()
    append = service.append()
    groups.poll()
    groups.handle(append.contents[0], failures=3)
    del service.history[-1]
    return service.finish()


@breaks("dead letter wrong")
def a_dead_letter_with_attempts_left(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service).with_handlers()
    append = service.append()
    groups.poll()
    groups.handle(append.contents[0], failures=1)
    groups.dead_letter(append.contents[0])
    return service.finish()


@breaks("dead letter wrong")
def a_dead_letter_twice_without_a_kill(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service).with_handlers()
    append = service.append()
    groups.poll()
    groups.handle(append.contents[0], failures=3)
    groups.dead_letter(append.contents[0], offset=1)
    return service.finish()


@breaks("dead letter wrong")
def a_dead_letter_twice_with_two_ids(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service).with_handlers()
    append = service.append()
    groups.poll()
    groups.add(Fault(("consumers",), "kill", service.clock))
    groups.handle(append.contents[0], failures=3)
    groups.dead_letter(append.contents[0], offset=1, message_id="another")
    return service.finish()


@breaks("shown after deletion")
def a_message_of_a_deleted_topic_in_an_answer(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    service.append("fleeting")
    service.publish()
    groups.poll("fleeting")
    groups.recreate()
    service.pull("fleeting")
    return _without_final_fleeting(service.finish())


@breaks("old after new")
def a_message_of_a_deleted_topic_after_its_successor(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    old = service.append("fleeting")
    groups.recreate()
    service.append("fleeting")
    delivery = groups.poll("fleeting")
    late = delivery.messages[0]._replace(queue_offset=2, content=old.contents[0])
    history = _without_final_fleeting(service.finish())
    service.pull("fleeting", 0, 1, final=True)
    final = service.history[-1]
    return spoiled([*history, final], delivery, messages=(*delivery.messages, late))


@breaks("surprise")
def a_member_that_the_service_refused(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    groups.add(ClientError("reader.1", "readers", service.clock, "CORRUPT_MESSAGE"))
    return service.finish()


@breaks("surprise")
def a_bug_in_a_member(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    groups.add(ClientError("reader.1", "readers", service.clock, "KeyError"))
    return service.finish()


@breaks("surprise")
def a_topic_missing_that_was_not_deleted(service: Simulated) -> list[Operation]:
    groups = SimulatedGroups(service)
    groups.add(ClientError("reader.1", "readers", service.clock, "TOPIC_NOT_FOUND"))
    return service.finish()


def _without_final_fleeting(history: list[Operation]) -> list[Operation]:
    """Remove the old messages of a deleted topic from its final reading."""
    return [one for one in history if not (getattr(one, "final", False) and getattr(one, "topic", "") == "fleeting")]
