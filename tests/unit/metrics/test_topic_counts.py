"""The limit on topics with their own labels."""

from __future__ import annotations

from tidemark.metrics.topic_counts import OTHER, TopicCounts


def counted(counts: TopicCounts) -> dict[str, tuple[float, float]]:
    messages, size = (
        {sample.labels["topic"]: sample.value for sample in family.samples} for family in counts.families()
    )
    return {topic: (messages[topic], size[topic]) for topic in messages}


def make(limit: int) -> TopicCounts:
    return TopicCounts(limit=limit, messages="rocketmq_messages_in_total", size="rocketmq_throughput_in_total")


def test_the_first_topics_have_labels_and_the_rest_one() -> None:
    """Nothing is lost: the rest are summed."""
    counts = make(2)
    for topic in ("a", "b", "c", "d", "a"):
        counts.add(topic, 2, 100)
    assert counted(counts) == {"a": (4, 200), "b": (2, 100), OTHER: (4, 200)}


def test_a_hundred_thousand_topics_stay_a_thousand_labels() -> None:
    """The sum is that of all topics."""
    counts = make(1_000)
    for number in range(100_000):
        counts.add(f"topic-{number}", 1, 10)
    found = counted(counts)
    assert len(found) == 1_001
    assert sum(messages for messages, _ in found.values()) == 100_000
