"""Print the entries of requirements.lock that extras and groups of pyproject.toml need.

    python scripts/lock_for.py query client --without numba

The images have the loops compiled, so they leave numba out, with what only numba needs.

There is one lock file, but the query image must not contain Spark. The `# via` comments of the lock are its dependency
graph, so the part is everything reachable from the core dependencies and those of the extras and groups. If the graph
lacked an edge, `pip install --require-hashes` would reject the part, because it installs only listed packages.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def bare_name(requirement: str) -> str:
    """Return the normalised name only: `Uvicorn[standard]>=0.34` gives `uvicorn`."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]).lower()


def roots(parts: list[str]) -> set[str]:
    """Return the names that the core and *parts* (extras and groups) require; each `tidemark[spark]` is resolved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    core, extras = project["project"]["dependencies"], project["project"]["optional-dependencies"]
    of_part = project["dependency-groups"] | extras
    if unknown := set(parts) - of_part.keys():
        sys.exit(f"pyproject.toml has no extra or group {', '.join(sorted(unknown))}")
    names: set[str] = set()
    waiting = [*core, *(requirement for part in parts for requirement in of_part[part])]
    while waiting:
        requirement = waiting.pop()
        if isinstance(requirement, dict):
            waiting += of_part[requirement["include-group"]]
        elif bare_name(requirement) == project["project"]["name"]:
            for other in re.findall(r"[\w-]+", requirement.split("[")[1].split("]")[0]):
                waiting += extras[other]
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


def part_of_lock(parts: list[str], without: set[str]) -> str:
    """Return the entries reachable from *parts*, except by way of *without*.

    They have no comments: an image is built again only if a version or hash changes.
    """
    locked = entries()
    wanted = roots(parts) - without
    if missing := (wanted | without) - {name for name, _, _ in locked}:
        sys.exit(f"requirements.lock lacks {', '.join(sorted(missing))}: run `make lock`")
    while new := {name for name, needed_by, _ in locked if needed_by & wanted} - wanted - without:
        wanted |= new
    return "".join(re.sub(r"^ +#.*\n", "", text, flags=re.MULTILINE) for name, _, text in locked if name in wanted)


def main() -> None:
    """Print the part that the command line names."""
    parser = argparse.ArgumentParser(description="Print the part of requirements.lock that extras and groups need.")
    parser.add_argument("parts", nargs="+", metavar="PART", help="extra or group of pyproject.toml")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="package to leave out")
    arguments = parser.parse_args()
    print(part_of_lock(arguments.parts, set(arguments.without)), end="")


if __name__ == "__main__":
    main()
