"""The committed notebooks."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from examples.run import NOTEBOOKS

FILES = sorted(NOTEBOOKS.glob("*.ipynb"))


def test_the_examples_have_notebooks() -> None:
    """Otherwise the next test would check none."""
    assert len(FILES) >= 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_has_no_outputs(path: Path) -> None:
    """Outputs and run counts would make needless changes; the author's machine must not appear."""
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert [cell.outputs for cell in code] == [[]] * len(code)
    assert {cell.execution_count for cell in code} == {None}
    assert {len(cell.metadata) for cell in notebook.cells} == {0}
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
