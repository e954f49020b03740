"""What a run of a peer, or of Tidemark, found: figures by key."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """One figure of one run. key: as in goals.py; note: how it was measured, or what else was seen."""

    key: str
    value: float
    unit: str
    note: str = ""
