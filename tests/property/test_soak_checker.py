"""The judge of a soak finds nothing in histories of a service that keeps its promises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.soak.checker import check
from tests.soak.history import Append
from tests.unit.soak.simulated import Simulated

LENGTHS = st.floats(0, 5)  # how long before and after the moment at which an operation takes effect
QUEUES = st.integers(0, 1)


@given(data=st.data(), steps=st.integers(1, 30))
def test_random_right_histories_pass(data: st.DataObject, steps: int) -> None:
    """Overlapping operations on two queues of two topics, a lagging watermark, changing terms."""
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
