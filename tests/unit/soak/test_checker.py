"""The judge of a soak: each kind of broken promise is caught by its own rule, and a right history passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.checker import RULES, check
from tests.soak.facts import Queue
from tests.soak.group_events import ClientError
from tests.soak.history import Answer, Fault, HistoryFile, Operation, Seen, read_history
from tests.unit.soak import planted_groups
from tests.unit.soak.planted import NO_ANSWER, PLANTS, Plant, final_pull
from tests.unit.soak.simulated import Simulated, spoiled
from tests.unit.soak.simulated_groups import READERS, SimulatedGroups

assert planted_groups, "the import must register its plants"


def some_traffic(service: Simulated) -> None:
    """Record right traffic of every kind."""
    for queue_id in (0, 1):
        append = service.append(queue_id=queue_id, count=3)
        service.by_id(append)
        service.publish(0.5)
        service.pull(queue_id=queue_id)
        service.append("bundles", queue_id, count=4, inner=True)
        service.publish()
        service.by_key(append)
        service.by_id(append)
        service.refuse(queue_id=queue_id)
        service.append(queue_id=queue_id, expected_next_offset=3)
        service.term += 1
        for boundary in ("lower", "upper"):
            service.offset_at((append.store_ms or 0) + 1, boundary, queue_id=queue_id)
        service.bounds(queue_id=queue_id)
        service.unavailable()


def test_a_valid_history_passes() -> None:
    service = Simulated()
    some_traffic(service)
    assert check(service.finish()) == []


def group_traffic(service: Simulated) -> None:
    """Record polls, a seek, commits, retries, a dead letter repeated after a kill, and a topic created again."""
    groups = SimulatedGroups(service).with_handlers()
    append = service.append(count=4)
    groups.seek(None)
    groups.poll(most=3)
    groups.commit(2)
    groups.seek(1)
    groups.poll()
    groups.commit(4)
    for failures, content in enumerate(append.contents):
        groups.handle(content, failures=failures)
    groups.commit(4, "mailing")
    groups.commit(2, "mailing", "%RETRY%mailing")
    groups.add(Fault(("consumers",), "kill", service.clock))
    groups.dead_letter(append.contents[3], offset=1)
    service.append("fleeting", count=2)
    groups.poll("fleeting", most=1)
    groups.recreate()
    service.append("fleeting", count=2)
    groups.poll("fleeting")
    groups.commit(4, topic="fleeting")
    groups.add(ClientError("reader.1", "readers", service.clock, "TOPIC_NOT_FOUND"))
    groups.add(ClientError("reader.1", "readers", service.clock, "QUERY_UNREACHABLE"))


def test_valid_group_traffic_passes() -> None:
    service = Simulated()
    group_traffic(service)
    history = [one for one in service.finish() if getattr(one, "topic", "") != "fleeting" or not hasattr(one, "seen")]
    service.pull("fleeting", 0, 2, final=True)
    assert check([*history, service.history[-1]]) == []


def churned_history(*, commits_before_deletion: bool) -> list[Operation]:
    """The group's offset passes a message that a member gets only after its topic was deleted."""
    service = Simulated()
    groups = SimulatedGroups(service)
    service.append("fleeting", count=2)
    groups.poll("fleeting", most=1)
    if commits_before_deletion:
        groups.commit(2, topic="fleeting")
    groups.recreate()
    groups.commit(2, topic="fleeting")
    groups.next[READERS, Queue("fleeting", 0)] = 1
    groups.poll("fleeting")
    service.append("fleeting")
    groups.poll("fleeting")
    history = [one for one in service.finish() if getattr(one, "topic", "") != "fleeting" or not hasattr(one, "seen")]
    service.pull("fleeting", 0, 2, final=True)
    return [*history, service.history[-1]]


def test_a_commit_past_messages_of_a_deleted_topic_is_valid_only_after_the_deletion() -> None:
    assert check(churned_history(commits_before_deletion=False)) == []
    assert [found.rule for found in check(churned_history(commits_before_deletion=True))] == ["committed ahead"]


def test_an_unanswered_append_may_be_stored_or_not() -> None:
    service = Simulated()
    there, gone = service.append(), service.append(queue_id=1)
    history = spoiled(spoiled(service.finish(), there, **NO_ANSWER), gone, **NO_ANSWER)
    assert check(history) == []
    assert check([one for one in history if one is not final_pull(history, 1)]) == []


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_violation_is_reported_only_by_its_rule(plant: Plant) -> None:
    assert {violation.rule for violation in check(plant(Simulated()))} == {PLANTS[plant]}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_violation_is_reported_among_other_traffic(plant: Plant) -> None:
    """The earlier traffic, in other queues of the same store, was right."""
    service = Simulated()
    for queue_id in (5, 6):
        service.append("ledger", queue_id, count=2)
    assert PLANTS[plant] in {violation.rule for violation in check(plant(service))}


def test_each_rule_has_a_planted_violation() -> None:
    assert set(PLANTS.values()) == set(RULES)


def test_a_history_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    service = Simulated()
    some_traffic(service)
    group_traffic(service)
    written = [*service.finish(), Fault(("writer", "query"), "kill", 3.5, "why")]
    file = HistoryFile(tmp_path / "history.jsonl")
    for operation in written:
        file.add(operation)
    file.close()
    assert list(read_history(file.path)) == written
    seen = next(one.seen[0] for one in read_history(file.path) if isinstance(one, Answer) and one.seen)
    assert isinstance(seen, Seen)
