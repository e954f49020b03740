"""Version of the running program."""

from __future__ import annotations

import importlib.metadata


def program_version() -> str:
    """Return the installed version; "unknown" if the program runs from a folder, as in an image."""
    try:
        return importlib.metadata.version("tidemark")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
