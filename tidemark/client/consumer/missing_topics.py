"""MissingTopics: a consumer's topics that do not exist, and whether the program gets an error for them."""

from __future__ import annotations

import logging
import time
from collections.abc import Set as AbstractSet

MISSING_PAUSE_S = 1.0  # between two pulls of a queue whose topic does not exist, and between two errors about a topic
_log = logging.getLogger(__name__)


class MissingTopics:
    """The topics that exist, and those that do not. One thread."""

    def __init__(self) -> None:
        self._answered: set[str] = set()
        self._missing: dict[str, float] = {}  # topic → time.monotonic() of its last error

    def has_answered(self, topic: str) -> None:
        """Note that *topic* exists."""
        if topic not in self._answered:
            self._answered.add(topic)
        if self._missing:
            self._missing.pop(topic, None)

    def is_to_raise(self, topic: str, *, read: AbstractSet[str]) -> bool:
        """Note that *topic* does not exist; return True if the program gets an error now, once per MISSING_PAUSE_S.

        It gets one if the topic never existed for this consumer, or if none of *read* exists any more. The deletion of
        one topic among others is logged once.
        """
        now = time.monotonic()
        if topic in self._answered and not read <= {*self._missing, topic}:
            if topic not in self._missing:
                self._missing[topic] = now - MISSING_PAUSE_S
                _log.warning("topic %s does not exist any more; this consumer reads its other topics", topic)
            return False
        is_due = now - self._missing.get(topic, 0.0) >= MISSING_PAUSE_S
        if is_due or topic not in self._missing:
            self._missing[topic] = now
            return True
        return False
