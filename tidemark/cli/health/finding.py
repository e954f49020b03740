"""DoctorFinding: one line of `doctor`."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Level(enum.Enum):
    """Severity of a finding."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class DoctorFinding(NamedTuple):
    """The result of one check. next_step: the remedy, or "" if none is needed."""

    level: Level
    name: str
    text: str
    next_step: str = ""
