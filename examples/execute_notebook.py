"""Runs a notebook like Jupyter's "Run all", and prints the output of its cells: python execute_notebook.py FILE.ipynb

The kernel is this interpreter, regardless of the kernels that are installed. --output COPY.ipynb writes the executed
copy.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, DeadKernelError

CELL_TIMEOUT_S = 600  # a cell that starts Spark takes minutes on a busy machine


class ThisPython(KernelSpecManager):
    """A kernel manager that returns this interpreter for every kernel name."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return this interpreter, because the notebook's *kernel_name* may exist only on its author's machine."""
        return KernelSpec(**get_kernel_dict())


def main() -> int:
    """Run the notebook and return 0 if no cell failed, otherwise 1."""
    arguments = _arguments()
    notebook = nbformat.read(arguments.notebook, as_version=4)
    failure = execute(notebook, arguments.cell_timeout)
    for cell in notebook.cells:
        print(shown(cell), end="")
    if arguments.output is not None:
        nbformat.write(notebook, arguments.output)
    if failure is not None:
        print(f"{arguments.notebook.name}: {failure}", file=sys.stderr)
        return 1
    return 0


def execute(notebook: nbformat.NotebookNode, cell_timeout_s: int) -> Exception | None:
    """Run all cells and store their outputs in *notebook*; return the error that ended the run early, if any."""
    with TemporaryDirectory() as folder:  # for sockets and IPython's profile, which would be in the user's home
        os.environ |= {"JUPYTER_RUNTIME_DIR": folder, "IPYTHONDIR": folder}
        kernel = AsyncKernelManager(
            kernel_spec_manager=ThisPython(), transport="ipc", connection_file=f"{folder}/kernel.json"
        )
        client = NotebookClient(notebook, km=kernel, timeout=cell_timeout_s, extra_arguments=["--colors=nocolor"])
        try:
            client.execute(cleanup_kc=True)
        except (CellControlSignal, DeadKernelError) as error:
            return error
    return None


def shown(cell: nbformat.NotebookNode) -> str:
    """Return a cell's outputs as text; a plot is only named.

    Stderr and errors are left out: child processes such as Java write to the terminal's stderr directly, and `main`
    reports the error.
    """
    parts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
            parts.append(output.text)
        elif "data" in output:
            parts.append(output.data.get("text/plain", "") + "\n")
    return "".join(parts)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a notebook from its first cell to its last.")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--output", type=Path, help="write the executed notebook to this file")
    parser.add_argument(
        "--cell-timeout", type=int, default=CELL_TIMEOUT_S, help="seconds that a cell may take (default: %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
