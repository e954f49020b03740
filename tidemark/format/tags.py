"""Tags ⇄ tags code (docs/format.md §2): the 64-bit number in a queue unit for filtering."""

from __future__ import annotations

from tidemark.format.primitives import java_hash

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELAY_LEVELS_MS = tuple(
    seconds * 1000
    for seconds in (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
)  # messageDelayLevel, levels 1..18
MAX_DELAY_LEVEL = len(DELAY_LEVELS_MS)
ALL_TAGS = "*"
TAG_SEPARATOR = "||"
# A tags code at or below this limit is an address in a consume queue extension (docs/format.md §4).
EXT_ADDRESS_LIMIT = -2147483649


def tags_code(tags: str | None) -> int:
    """Return the code of a TAGS value; 0 if it is empty or None."""
    return java_hash(tags) if tags else 0


def delivery_time(level: int, store_timestamp_ms: int) -> int:
    """Return the tags code of a record in SCHEDULE_TOPIC_XXXX: its due time. Levels above 18 count as 18."""
    return store_timestamp_ms + DELAY_LEVELS_MS[min(level, MAX_DELAY_LEVEL) - 1]


def parse_tag_expression(expression: str | None) -> frozenset[str] | None:
    """Return the tags of a subscription such as ``A || B``; None for all tags (``*`` or empty)."""
    if expression is None or not expression.strip() or expression.strip() == ALL_TAGS:
        return None
    tags = split_tags(expression)
    return None if ALL_TAGS in tags or not tags else tags


def split_tags(expression: str) -> frozenset[str]:
    """Return the trimmed tags between the separators of *expression*; a star is not special."""
    return frozenset(tag for piece in expression.split(TAG_SEPARATOR) if (tag := piece.strip()))
