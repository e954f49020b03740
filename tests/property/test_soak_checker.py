"""The judge of a soak finds nothing in histories of a service that keeps its promises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.soak.checker import check
from tests.soak.facts import Queue
from tests.soak.history import Append
from tests.unit.soak.simulated import Simulated
from tests.unit.soak.simulated_groups import MAX_ATTEMPTS, READERS, SimulatedGroups

LENGTHS = st.floats(0, 5)  # durations before and after the moment at which an operation takes effect
QUEUES = st.integers(0, 1)


@given(data=st.data(), steps=st.integers(1, 30))
def test_random_valid_histories_pass(data: st.DataObject, steps: int) -> None:
    """Operations on two queues of two topics overlap, the watermark lags, and terms change."""
    service = Simulated()
    appends: list[Append] = []
    for _ in range(steps):
        topic, queue_id = data.draw(st.sampled_from(("orders", "bundles"))), data.draw(QUEUES)
        lasting = {"early": data.draw(LENGTHS), "late": data.draw(LENGTHS)}
        known = data.draw(st.sampled_from(appends)) if appends else None
        match data.draw(st.sampled_from(("append", "refuse", "publish", "term", "pull", "bounds", "time", "lookup"))):
            case "append":
                count = data.draw(st.integers(1, 4))
                appends.append(service.append(topic, queue_id, count, inner=topic == "bundles", **lasting))
            case "refuse":
                service.refuse(topic, queue_id)
            case "publish":
                service.publish(data.draw(st.floats(0, 1)))
            case "term":
                service.term += 1
            case "pull":
                service.pull(topic, queue_id, 0, **lasting)
            case "bounds":
                service.bounds(topic, queue_id, **lasting)
            case "time":
                time_ms = int(service.clock) - data.draw(st.integers(-2, steps))
                boundary = data.draw(st.sampled_from(("lower", "upper")))
                service.offset_at(time_ms, boundary, topic, queue_id, **lasting)
            case "lookup" if known is not None:
                service.by_id(known, **lasting)
                service.by_key(known, **lasting)
    assert check(service.finish()) == []


@given(data=st.data(), steps=st.integers(1, 30))
def test_random_valid_group_histories_pass(data: st.DataObject, steps: int) -> None:
    """There are polls, seeks back, commits at or below the position, failing handlers, and re-created topics."""
    service = Simulated()
    groups = SimulatedGroups(service).with_handlers()
    orders, fleeting = Queue("orders", 0), Queue("fleeting", 0)
    begin = 0  # of the current incarnation
    for _ in range(steps):
        position = groups.next.get((READERS, orders), 0)
        match data.draw(st.sampled_from(("append", "fleet", "poll", "seek", "commit", "recreate"))):
            case "append":
                contents = service.append(count=data.draw(st.integers(1, 3))).contents
                for content in contents:
                    groups.handle(content, failures=data.draw(st.integers(0, MAX_ATTEMPTS)))
            case "fleet":
                service.append("fleeting", count=data.draw(st.integers(1, 3)))
                service.publish()
                service.pull("fleeting", 0, begin)
            case "poll":
                groups.poll(most=data.draw(st.integers(1, 5)))
                groups.poll("fleeting", most=data.draw(st.integers(1, 5)))
            case "seek":
                groups.seek(data.draw(st.integers(0, position)))
            case "commit":
                groups.commit(data.draw(st.integers(0, position)))
                groups.commit(groups.next.get((READERS, fleeting), 0), topic="fleeting")
            case "recreate":
                groups.recreate()
                begin = len(service.queues[fleeting])
    while groups.poll(most=10).messages or groups.poll("fleeting", most=10).messages:
        pass
    history = service.finish()
    old = [one for one in history if getattr(one, "final", False) and getattr(one, "topic", "") == "fleeting"]
    for offset in range(begin, len(service.queues[fleeting]), 10):
        service.pull("fleeting", 0, offset, final=True)
    assert check([one for one in service.history if not any(one is gone for gone in old)]) == []
