"""`tidemark archive run`: adds a store's new messages to its archive, as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.archive.progress import QuietOption, shown_progress
from tidemark.cli.archive.spark_options import LOCAL, ConfOption, MasterOption, open_session, parse_conf
from tidemark.cli.terminal.output import Output, OutputOption, print_json

if TYPE_CHECKING:
    from tidemark.archive.run import Archived

_MIB = 1 << 20


def run(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The store's directory.", exists=True, file_okay=False)
    ],
    destination: Annotated[
        Path, typer.Argument(metavar="OUT", help="The archive's folder: new, or with an earlier archive of this store.")
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option(help="Archive this topic. Repeatable. Default: all, unless --topic-pattern is given."),
    ] = None,
    topic_pattern: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="Archive topics whose whole name matches. Default: none."),
    ] = None,
    all_records: Annotated[
        bool, typer.Option("--all", help="Archive up to the watermark. Default: only full log files.")
    ] = False,
    fail_on_corruption: Annotated[
        bool,
        typer.Option(help="Fail at damaged records; otherwise leave them out and list them in the manifest."),
    ] = True,
    fail_on_data_loss: Annotated[
        bool,
        typer.Option(help="Fail if messages expired before they were archived; otherwise list them in the manifest."),
    ] = True,
    file_mib: Annotated[int, typer.Option(min=1, help="Approximate uncompressed size of a file, in MiB.")] = 256,
    row_group_mib: Annotated[
        int, typer.Option(min=1, help="Approximate uncompressed size of a row group, in MiB.")
    ] = 32,
    master: MasterOption = LOCAL,
    conf: ConfOption = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Directory of Tidemark's own files, if the store is an attached broker's."),
    ] = None,
    store_name: Annotated[
        str, typer.Option(help="Name of the store to record in the archive.", envvar="TIDEMARK_STORE_NAME")
    ] = "tidemark-0",
    quiet: QuietOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Archive topics as Parquet, by topic and day, while writer and pipeline run.

    A run adds the messages that have arrived since the last run. It reads the written files again and compares them
    with the store before it lists them in OUT/manifest.json. A failed or killed run leaves the previous archive intact.
    """
    from tidemark.archive.options import ArchiveOptions, ArchiveSource
    from tidemark.archive.run import run_archive
    from tidemark.errors import ArgumentIllegalError
    from tidemark.store.paths import StorePaths

    if not StorePaths(directory).commit_log.is_dir():
        raise ArgumentIllegalError(f"{directory} is not a store: it has no commitlog folder", argument="directory")
    settings = parse_conf(conf)
    options = ArchiveOptions(
        store_name=store_name,
        topics=tuple(topic or ()),
        topic_pattern=topic_pattern,
        all_records=all_records,
        fail_on_corruption=fail_on_corruption,
        fail_on_data_loss=fail_on_data_loss,
        file_bytes=file_mib * _MIB,
        row_group_bytes=row_group_mib * _MIB,
    )
    with shown_progress(quiet=quiet or output is Output.JSON) as progress:
        archived = run_archive(
            ArchiveSource(directory, state),
            destination,
            options,
            lambda: open_session(master, settings),
            on_progress=progress,
        )
    if output is Output.JSON:
        print_json(_document(archived))
    else:
        _print_text(archived)


def _document(archived: Archived) -> dict[str, object]:
    manifest = archived.manifest
    return {
        "rows": sum(file.rows for file in archived.files),
        "files": [file.model_dump() for file in archived.files],
        "left_out": [one.model_dump() for one in archived.left_out],
        "removed_files": archived.removed,
        "physical_end": manifest.physical_end,
        "archive": {"rows": manifest.rows, "files": len(manifest.files), "size": manifest.size},
    }


def _print_text(archived: Archived) -> None:
    manifest, files = archived.manifest, archived.files
    typer.echo(
        f"archived {sum(file.rows for file in files):,} messages in {len(files):,} files "
        f"({sum(file.size for file in files):,} bytes), compared with the store"
    )
    if not files:
        typer.echo("messages of the log's last file are archived when it is full, or at once with --all")
    if archived.left_out:
        left = sum(one.next - one.first for one in archived.left_out)
        typer.echo(f"left out {left:,} messages: see left_out in the manifest")
    typer.echo(f"the archive has {manifest.rows:,} messages in {len(manifest.files):,} files ({manifest.size:,} bytes)")
