"""Writes docs/licences.md: the licence of each package that `tidemark[all]` installs, from its metadata.

`make docs` writes it; `make supply-chain` and a test fail on a licence of requirements.lock that is not in ALLOWED.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.lock import ROOT, locked_versions

PAGE = ROOT / "docs" / "licences.md"
ALLOWED = frozenset(  # permissive licences, and MPL-2.0, which requires only changes to its own files to be published
    {
        *("MIT", "MIT License", "MIT-0", "MIT-CMU", "ISC", "ISC License (ISCL)", "0BSD", "Zlib", "CC0", "CC0-1.0"),
        *("BSD License", "BSD-2-Clause", "BSD-3-Clause", "3-Clause BSD License", "PSF-2.0", "LLVM-exception"),
        *("Apache-2.0", "Apache 2.0", "Apache License 2.0", "Apache Software License", "DFSG approved"),
        *("Python Software Foundation License", "MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)"),
    }
)
SAID_ELSEWHERE = {  # packages without a licence in their metadata: the licence in the project's licence file
    "axe-playwright-python": "MIT",
}
_BETWEEN = re.compile(r"\s+(?:AND|OR|WITH)\s+|;\s*")
_ABOUT = """# Licences

Tidemark is under the Apache License 2.0.
The table has the packages that `pip install "tidemark[all]"` installs on Linux, by the licence in their metadata.

`make supply-chain` also checks the packages for development and tests, all of `requirements.lock`.
It fails on a licence that is not in the list of `scripts/licences.py`: permissive licences, and the MPL 2.0, which requires only changes to its own files to be published.
"""  # noqa: E501 - a sentence a line


def licences() -> dict[str, str]:
    """Return the licence of each locked package that is installed, by name."""
    command = [sys.executable, "-m", "piplicenses", "--format=json", "--with-system"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own tool
    said: dict[str, str] = {canonicalize_name(row["Name"]): row["License"] for row in json.loads(done.stdout)}
    found = {}
    for name in locked_versions():
        if name in said:
            found[name] = SAID_ELSEWHERE.get(name, said[name]) if said[name] == "UNKNOWN" else said[name]
    return dict(sorted(found.items()))


def installed_by(requirement: str) -> set[str]:
    """Return the names of all packages that *requirement* installs here, by the metadata of the installed ones."""
    found: set[str] = set()
    done: set[str] = set()
    waiting = [Requirement(requirement)]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if str(one) in done:
            continue
        done.add(str(one))
        found.add(name)
        for text in metadata.requires(name) or ():
            needed = Requirement(text)
            extras = one.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return found - {canonicalize_name(Requirement(requirement).name)}


def not_allowed(found: dict[str, str]) -> dict[str, str]:
    """Return the licences with a part that is not allowed. A choice with one such part counts, to force a review."""
    return {name: licence for name, licence in found.items() if not set(_parts(licence)) <= ALLOWED}


def _parts(licence: str) -> list[str]:
    """Split MPL-2.0 AND (Apache-2.0 OR MIT) into three. Brackets in a name, as in ISC License (ISCL), are kept."""
    parts = _BETWEEN.split(licence)
    return [part if part in ALLOWED else part.strip("() ") for part in parts]


def page() -> str:
    """Return the content of docs/licences.md."""
    by_licence: dict[str, list[str]] = {}
    installed = installed_by("tidemark[all]")
    for name, licence in licences().items():
        if name in installed:
            by_licence.setdefault(licence, []).append(name)
    rows = "\n".join(f"| {licence} | {', '.join(names)} |" for licence, names in sorted(by_licence.items()))
    return f"{_ABOUT}\n| licence | packages |\n|---|---|\n{rows}\n"


def check() -> int:
    """Print the licences that are not allowed. Return 1 if there are any, otherwise 0."""
    found = licences()
    wrong = not_allowed(found)
    for name, licence in wrong.items():
        print(f"{name}: {licence} is not in the list of scripts/licences.py")
    print(f"licences: {len(found)} packages, {len(wrong)} with a licence that is not allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(page()) else 1)
