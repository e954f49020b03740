"""The verb `repair`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.output import Output, OutputOption, print_json, print_table


def repair(
    directory: Annotated[Path, typer.Argument(help="The store's directory. No service may run on it.", metavar="DIR")],
    accept_older: Annotated[
        bool,
        typer.Option(
            "--accept-older",
            help="Where a file and its checked copy are both damaged, use the file's .bak, which is one write older.",
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Restore the small files that cannot be derived from the log: topics, tombstones, terms, format, offsets.

    Each has a copy with a checksum; the newest sound one of the two counts. The services restore a single damaged file
    themselves when they start. This command also names the files that have lost both. A damaged file is kept as
    `<name>.damaged` below `tidemark/`. Exits with 1 if a file is lost.
    """
    from tidemark.cli.hand_back import require_stopped
    from tidemark.errors import StoreContradictionError
    from tidemark.store.originals import Outcome, querys_originals, writers_originals
    from tidemark.store.originals import repair as repair_one
    from tidemark.store.paths import StorePaths
    from tidemark.store.storage import DiskStorage

    paths = StorePaths(directory.absolute())
    if not paths.root.is_dir():
        raise StoreContradictionError(f"there is no directory {directory}", path=str(directory))
    require_stopped(paths)
    storage = DiskStorage()
    done = [
        repair_one(original, storage, accept_older=accept_older)
        for original in (*writers_originals(paths), *querys_originals(paths))
    ]
    rows = [(str(one.path.relative_to(paths.root)), one.outcome.value, one.cause) for one in done]
    if output is Output.JSON:
        print_json({"files": [dict(zip(("path", "outcome", "cause"), row, strict=True)) for row in rows]})
    else:
        print_table(("file", "outcome", "cause"), rows)
    if any(one.outcome is Outcome.LOST for one in done):
        raise typer.Exit(1)
