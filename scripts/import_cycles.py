"""Fail if modules import each other in a circle: part of `make lint`.

Imports inside functions and for type checkers count, too.
"""

from __future__ import annotations

import graphlib
import sys
from collections.abc import Collection, Mapping

import grimp

PACKAGES = ("tidemark", "services", "pyspark_tidemark")


def imports_of(*packages: str) -> dict[str, set[str]]:
    """Return the modules that each module of *packages* imports."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in sorted(graph.modules)}


def circle_in(imports: Mapping[str, Collection[str]]) -> list[str]:
    """Return modules that import each other in a circle, each the next one; [] if there are none."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(reversed(error.args[1]))
    return []


def main() -> None:
    """Print a circle of imports, if there is one, and exit with status 1."""
    imports = imports_of(*PACKAGES)
    if circle := circle_in(imports):
        sys.exit("modules import each other in a circle: " + " -> ".join(circle))
    print(f"{len(imports)} modules, no circle of imports")


if __name__ == "__main__":
    main()
