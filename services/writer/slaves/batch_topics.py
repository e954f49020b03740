"""BatchTopics: the names of the topics whose queue files are of batches."""

from __future__ import annotations

from ..topics.topic_table import TopicTable


class BatchTopics:
    """The names, as the table has them now, and perhaps those of deleted topics. They are looked up after additions."""

    def __init__(self, topics: TopicTable) -> None:
        self._topics = topics
        self._seen_additions = -1
        self._names: frozenset[str] = frozenset()

    def names(self) -> frozenset[str]:
        """Return the names."""
        if self._seen_additions != self._topics.additions:
            self._seen_additions = self._topics.additions
            self._names = frozenset(topic.name for topic in self._topics.all() if topic.is_batch)
        return self._names
