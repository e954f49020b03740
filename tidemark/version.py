"""Which version of this program runs."""

from __future__ import annotations

import importlib.metadata


def program_version() -> str:
    """The installed version; "unknown" where the program runs from a folder, as in an image."""
    try:
        return importlib.metadata.version("tidemark")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
