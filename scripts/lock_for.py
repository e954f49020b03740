"""Print the part of requirements.lock that one extra of pyproject.toml needs: python scripts/lock_for.py query numba

Names behind the extra are left out, with what only they need: the images have the loops compiled.

There is one lock file, but the query image must not contain Spark. The `# via` comments of the lock are its dependency
graph, so the part is everything reachable from the core dependencies and those of the extra. If the graph lacked an
edge, `pip install --require-hashes` would reject the part, because it installs only listed packages.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def bare_name(requirement: str) -> str:
    """Return the normalised name only: `Uvicorn[standard]>=0.34` gives `uvicorn`."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]).lower()


def roots(extra: str) -> set[str]:
    """Return the names that the core and *extra* require; `tidemark[spark]` is replaced with that extra's names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names: set[str] = set()
    waiting = [*project["dependencies"], *project["optional-dependencies"][extra]]
    while waiting:
        requirement = waiting.pop()
        if bare_name(requirement) == project["name"]:
            for other in re.findall(r"[\w-]+", requirement.split("[")[1].split("]")[0]):
                waiting += project["optional-dependencies"][other]
        else:
            names.add(bare_name(requirement))
    return names


def entries() -> list[tuple[str, set[str], str]]:
    """Return (name, names that need it, text) of each entry; a name has one entry per Python that it is pinned for."""
    texts = re.findall(r"^\S.*\n(?:[ \t].*\n)+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return [
        (bare_name(text), {bare_name(via) for via in re.findall(r"#(?: via)? +([\w.-]+)", text)}, text)
        for text in texts
    ]


def main(extra: str, *without: str) -> None:
    """Print the entries reachable from *extra*, except by way of *without*."""
    locked = entries()
    wanted = roots(extra) - set(without)
    if missing := (wanted | set(without)) - {name for name, _, _ in locked}:
        sys.exit(f"requirements.lock lacks {', '.join(sorted(missing))}: run `make lock`")
    while new := {name for name, needed_by, _ in locked if needed_by & wanted} - wanted - set(without):
        wanted |= new
    print("".join(text for name, _, text in locked if name in wanted), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
