"""Finding: one line of `doctor`."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Level(enum.Enum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """What was looked at and how it is. next_step: what to do, "" where there is nothing to be done."""

    level: Level
    name: str
    text: str
    next_step: str = ""
