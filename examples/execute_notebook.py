"""Runs a notebook as Jupyter's "Run all" does, and prints what its cells show: python execute_notebook.py FILE.ipynb

The kernel is this interpreter, whatever kernels the machine knows. Nothing is written but what the notebook writes,
and the executed copy where one is asked for: --output COPY.ipynb
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

CELL_TIMEOUT_S = 120


class ThisPython(KernelSpecManager):
    """One kernel, whatever it is called: this interpreter."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """*kernel_name* is what the notebook says; it may name a kernel that only its author had."""
        return KernelSpec(**get_kernel_dict())


def main() -> int:
    """0 when no cell failed."""
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
    """Run all cells, which then hold their outputs; what ended it before the last one, if anything did."""
    with TemporaryDirectory() as folder:  # sockets, IPython's profile: else in the user's home
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
    """What a terminal can show of a cell's outputs; of a plot, that there is one. Of stderr and errors: nothing.

    What Java and the like write to stderr has come already, and an error is told at the end.
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
    parser.add_argument("--output", type=Path, help="write the executed copy there")
    parser.add_argument(
        "--cell-timeout", type=int, default=CELL_TIMEOUT_S, help="seconds a cell may take (default %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
