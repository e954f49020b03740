"""The files that this process has open."""

from __future__ import annotations

import os
from pathlib import Path


def open_files(root: Path) -> list[str]:
    """Return the files below *root* that this process has open; deleted ones end with " (deleted)"."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # closed meanwhile
            continue
    return sorted(path for path in found if path.startswith(str(root)))
