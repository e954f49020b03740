from __future__ import annotations

from services.writer.batch.batch import Appended, Batch
from services.writer.log.append_counts import AppendCounts
from tests.unit.writer.batches import batch_of
from tidemark.errors import DiskFullError, NextOffsetMismatchError


def appended(*bodies: bytes, topic: str = "orders", duplicate: bool = False) -> Batch:
    """Return a batch that is stored in 100 bytes."""
    batch = batch_of(*bodies, topic=topic)
    batch.appended = Appended(0, 0, len(bodies), 500, 600, 0, b"", duplicate)
    return batch


def failed(error: DiskFullError | NextOffsetMismatchError) -> Batch:
    batch = batch_of(b"x")
    batch.error = error
    return batch


def samples(counts: AppendCounts) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values by sample name and label values."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in counts.families():
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_messages_and_stored_bytes_count_by_topic() -> None:
    counts = AppendCounts(max_topics=10)
    counts.count([appended(b"a", b"b"), appended(b"c"), appended(b"d", topic="logs")])
    values = samples(counts)
    messages, size = values["rocketmq_messages_in_total"], values["rocketmq_throughput_in_total"]
    assert sorted(messages.values()) == [1, 3]
    assert sorted(size.values()) == [100, 200]


def test_a_repeat_counts_as_a_duplicate_and_not_as_a_message() -> None:
    counts = AppendCounts(max_topics=10)
    counts.count([appended(b"a"), appended(b"a", duplicate=True)])
    values = samples(counts)
    assert list(values["rocketmq_messages_in_total"].values()) == [1]
    assert values["tidemark_duplicate_batches_total"] == {(): 1}


def test_refusals_before_and_during_an_append_are_counted_by_reason() -> None:
    counts = AppendCounts(max_topics=10)
    counts.count([failed(DiskFullError("full")), failed(NextOffsetMismatchError("other"))])
    counts.refuse(DiskFullError("full"))
    assert samples(counts)["tidemark_refused_appends_total"] == {("DISK_FULL",): 2, ("NEXT_OFFSET_MISMATCH",): 1}
