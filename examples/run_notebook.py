"""Runs the code cells of a notebook without Jupyter: python run_notebook.py FILE.ipynb

As its "Run all" would; the last expression of a cell is printed.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any


def main(path: Path) -> None:
    """Run it; what a cell raises ends it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        run_cell("".join(cell["source"]), names, f"{path.name}, cell {number}")


def run_cell(source: str, names: dict[str, Any], where: str) -> None:
    """Run *source* with *names*."""
    tree = ast.parse(source, where)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, where, "exec"), names)
        return
    del tree.body[-1]
    exec(compile(tree, where, "exec"), names)
    value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    if value is not None:
        print(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
