"""`tidemark store repair`: restores damaged small files and rebuilds damaged derived files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.cli.terminal.output import Output, OutputOption, print_json, print_table
from tidemark.errors import ArgumentIllegalError

if TYPE_CHECKING:
    from tidemark.cli.store.repair_derived import DerivedRepair
    from tidemark.store.originals.originals import Repair
    from tidemark.store.paths import StorePaths


def repair(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="The store's directory. No service may be running on it.",
            exists=True,
            file_okay=False,
        ),
    ],
    accept_older: Annotated[
        bool,
        typer.Option(
            "--accept-older",
            help="If a file and its checked copy are both damaged, use the file's .bak, which is one write older.",
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Restore damaged small files, and rebuild the queue files, index files and marks that contradict the log.

    Topics, tombstones, terms, format and offsets cannot be derived from the log. Each of these files has a copy with a
    checksum, and the newer undamaged one of the two is used. Damaged queue files, index files and marks are moved to
    tidemark/indexer/set-aside and rebuilt from the log. Exit status 1 if a file is lost or findings remain.
    """
    from tidemark.cli.store.repair_derived import repair_derived
    from tidemark.local.hand_back import require_stopped
    from tidemark.store.originals.format_file import require_known_format
    from tidemark.store.originals.originals import RepairOutcome
    from tidemark.store.paths import StorePaths

    paths = StorePaths(directory.absolute())
    if not paths.commit_log.is_dir():
        raise ArgumentIllegalError(f"{directory} is not a store: it has no commitlog folder", argument="directory")
    require_stopped(paths)
    originals = _repair_originals(paths, accept_older=accept_older)
    derived = None
    if all(one.outcome is not RepairOutcome.LOST for one in originals):  # a queue's format depends on the topics
        require_known_format(paths)
        derived = repair_derived(paths)
    (_print_json if output is Output.JSON else _print_text)(paths, originals, derived)
    raise typer.Exit(ExitStatus.FAILED if derived is None or derived.left else ExitStatus.OK)


def _repair_originals(paths: StorePaths, *, accept_older: bool) -> list[Repair]:
    from tidemark.store.originals.originals import querys_originals, writers_originals
    from tidemark.store.originals.originals import repair as repair_one
    from tidemark.store.storage import DiskStorage

    storage = DiskStorage()
    originals = (*writers_originals(paths), *querys_originals(paths))
    return [repair_one(original, storage, accept_older=accept_older) for original in originals]


def _rows(paths: StorePaths, originals: list[Repair]) -> list[tuple[str, str, str]]:
    return [(str(one.path.relative_to(paths.root)), one.outcome.value, one.cause) for one in originals]


def _print_json(paths: StorePaths, originals: list[Repair], derived: DerivedRepair | None) -> None:
    files = [dict(zip(("path", "outcome", "cause"), row, strict=True)) for row in _rows(paths, originals)]
    done = {} if derived is None else derived.as_json()
    print_json({"files": files, **done})


def _print_text(paths: StorePaths, originals: list[Repair], derived: DerivedRepair | None) -> None:
    print_table(("file", "outcome", "cause"), _rows(paths, originals))
    if derived is None:
        typer.echo("Queue files and key index were not repaired.")
        return
    index = "" if derived.first is None else f", and the key index from {derived.first or 'its first file'} on"
    queues, left = len(derived.queues), len(derived.left)
    typer.echo(f"{derived.found} findings; rebuilt: {queues} queues{index}; {left} findings remain")
    for finding in derived.left:
        typer.echo(f"  {finding.reason}  {finding.path or ''}  {finding.text}")
