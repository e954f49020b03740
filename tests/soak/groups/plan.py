"""The groups of a soak, and the messages whose handlers fail. Both follow from names, so that every process agrees."""

from __future__ import annotations

import zlib

from tests.soak.group_events import Subscription
from tests.soak.messages import BUNDLES, CHURNED, LEDGER, ORDERS

READERS, TABLES, ASYNC, MAILING, FLEETING = "readers", "tables", "async", "mailing", "fleeting-readers"
MAX_ATTEMPTS = 3
FIRST_DELAY_LEVEL = 1  # retries come after 1 s and 5 s
SUBSCRIPTIONS = (
    Subscription(READERS, (ORDERS, BUNDLES, LEDGER)),
    Subscription(TABLES, (ORDERS, BUNDLES)),
    Subscription(ASYNC, (BUNDLES, LEDGER)),
    Subscription(MAILING, (ORDERS, BUNDLES), MAX_ATTEMPTS),
    Subscription(FLEETING, tuple(CHURNED)),
)
_EVERY = 40  # of this number of messages, one fails for ever, one twice and one once


def failing_attempts(content: str) -> int:
    """Return how many attempts fail to handle *content*; MAX_ATTEMPTS sends it to the dead letters."""
    number = zlib.crc32(content.encode()) % _EVERY
    return number if 1 <= number <= MAX_ATTEMPTS else 0
