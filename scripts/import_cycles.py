"""Fail if modules import each other in a circle: part of `make lint`.

Imports inside functions and for type checkers count, too.
"""

from __future__ import annotations

import graphlib
import sys

import grimp

PACKAGES = ("tidemark", "services", "pyspark_tidemark")


def main() -> None:
    """Print a circle of imports, if there is one, and exit with status 1."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in sorted(graph.modules)}
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        sys.exit("modules import each other in a circle: " + " -> ".join(reversed(error.args[1])))
    print(f"{len(imports)} modules, no circle of imports")


if __name__ == "__main__":
    main()
