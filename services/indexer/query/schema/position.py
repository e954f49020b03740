"""The position of the store that every answer contains."""

from __future__ import annotations

from typing import Any

from tidemark.read.watermark import Watermark


def position_json(watermark: Watermark) -> dict[str, Any]:
    """Return watermark, committed offset and lag."""
    return {
        "watermark": {
            "term": watermark.term,
            "physical_offset": watermark.physical_offset,
            "published_ms": watermark.published_ms,
        },
        "committed_offset": watermark.committed_offset,
        "lag_bytes": watermark.lag_bytes,
    }
