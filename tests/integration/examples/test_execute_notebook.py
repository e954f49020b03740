"""The execution of examples/'s notebooks: in this interpreter, without side effects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from examples.run import FOLDER

pytestmark = pytest.mark.integration


def run(folder: Path, *cells: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a notebook of code cells for a user whose home is *folder*/home."""
    path = folder / "cells.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON"))}
    return subprocess.run(
        [sys.executable, FOLDER / "execute_notebook.py", path, *options],
        cwd=folder,
        env=environment | {"HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_kernel_uses_this_interpreter_and_does_not_change_the_home(tmp_path: Path) -> None:
    """The user has a kernel of the same name, which fails."""
    kernel = tmp_path / "home" / ".local" / "share" / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": ["false"], "display_name": "Python 3", "language": "python"}))
    before = sorted((tmp_path / "home").rglob("*"))
    done = run(tmp_path, "import sys\nprint('printed')\nsys.executable", "%history")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"printed\n'{sys.executable}'\n"), done.stdout
    assert sorted((tmp_path / "home").rglob("*")) == before


def test_a_failing_cell_ends_the_notebook_and_is_reported(tmp_path: Path) -> None:
    """The copy has the outputs before it; the kernel is gone."""
    copy = tmp_path / "copy.ipynb"
    cells = ("import os\nos.getpid()", "1 / 0", "print('never')")
    done = run(tmp_path, *cells, options=("--output", str(copy)))
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "never" not in done.stdout
    assert not Path("/proc", done.stdout.strip()).exists()
    shown = nbformat.read(copy, as_version=4).cells
    assert [[output.output_type for output in cell.outputs] for cell in shown] == [["execute_result"], ["error"], []]


def test_a_cell_above_the_timeout_fails(tmp_path: Path) -> None:
    """A hang in CI ends at the limit."""
    done = run(tmp_path, "import time\ntime.sleep(60)", options=("--cell-timeout", "1"))
    assert done.returncode == 1
    assert "timed out" in done.stderr
