"""The verb `bench`: the project's own benchmarks, where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: tidemark bench append --scale 0.1"


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names, keys or patterns. Without: the usual ones.")
    ] = None,
    scale: Annotated[float, typer.Option(min=0.001, help="Shortens or lengthens; 1 for the figures.")] = 1.0,
) -> None:
    """Run the benchmarks of a checkout.

    Prints the figures beside the machine they were measured on."""
    import subprocess
    import sys

    from tidemark.errors import UnavailableError

    root = Path(__file__).resolve().parents[3]
    if not (root / "benchmarks" / "__main__.py").is_file():
        error = UnavailableError("the benchmarks are part of a checkout, not of an installed package")
        error.add_note("clone the repository, then `make sync bench`")
        raise error
    command = [sys.executable, "-m", "benchmarks", "run", "--names", ",".join(names or []), "--scale", str(scale)]
    raise typer.Exit(subprocess.run(command, cwd=root, check=False).returncode)  # noqa: S603 - our own module
