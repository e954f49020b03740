"""Reads requirements.lock: the locked versions and their hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
_HASH = re.compile(r"\s--hash=(\S+)")


def requirements(text: str) -> Iterator[tuple[Requirement, list[str]]]:
    """Yield (requirement, hashes) in the order of the file."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for entry in lines.replace("\\\n", " ").splitlines():
        if entry.strip():
            yield Requirement(_HASH.sub("", entry).strip()), _HASH.findall(entry)


def locked_versions() -> dict[str, list[str]]:
    """Return the versions by name; several if they depend on the platform."""
    versions: dict[str, list[str]] = {}
    for requirement, _ in requirements(LOCK.read_text()):
        versions.setdefault(canonicalize_name(requirement.name), []).append(str(requirement.specifier))
    return versions
