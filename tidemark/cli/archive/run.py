"""`tidemark archive run`: what a store has and its archive has not, as Parquet."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.archive.spark_options import LOCAL, ConfOption, MasterOption, job_progress, parse_conf
from tidemark.cli.terminal.output import Output, OutputOption, print_json

if TYPE_CHECKING:
    from tidemark.archive.run import Archived

_MIB = 1 << 20


def run(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The store's directory.", exists=True, file_okay=False)
    ],
    destination: Annotated[
        Path, typer.Argument(metavar="OUT", help="The archive's folder: new, or with an archive of this store.")
    ],
    topic: Annotated[list[str] | None, typer.Option(help="This topic; may be repeated. Default: all.")] = None,
    topic_pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Topics whose whole name matches; beside those of --topic.")
    ] = None,
    all_records: Annotated[
        bool, typer.Option("--all", help="Up to the watermark, not only what log files hold that are full.")
    ] = False,
    fail_on_corruption: Annotated[
        bool, typer.Option(help="Fail at damaged records; else leave them out, and name them in the manifest.")
    ] = True,
    fail_on_data_loss: Annotated[
        bool, typer.Option(help="Fail where messages expired before they were archived; else name them.")
    ] = True,
    file_mib: Annotated[int, typer.Option(min=1, help="MiB of messages a file holds, about, uncompressed.")] = 256,
    row_group_mib: Annotated[int, typer.Option(min=1, help="MiB of a row group, about, uncompressed.")] = 32,
    master: MasterOption = LOCAL,
    conf: ConfOption = None,
    state: Annotated[
        Path | None, typer.Option(help="Of an attached broker's directory: where Tidemark keeps its own files.")
    ] = None,
    store_name: Annotated[str, typer.Option(help="Noted in the archive.", envvar="TIDEMARK_STORE_NAME")] = "tidemark-0",
    output: OutputOption = Output.TABLE,
) -> None:
    """Archive topics as Parquet, by topic and day, while writer and pipeline run.

    A run adds what has come since the last one. It reads what it has written, compares it with the store, and only then
    names it in OUT/manifest.json. When it fails, or is killed, the archive before it is as it was.
    """
    from tidemark.archive.options import ArchiveOptions, Source
    from tidemark.archive.run import run_archive
    from tidemark.errors import ArgumentIllegalError
    from tidemark.store.paths import StorePaths

    if not StorePaths(directory).commit_log.is_dir():
        raise ArgumentIllegalError(f"{directory} is no store: it has no commitlog folder", argument="directory")
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
    with job_progress(quiet=output is Output.JSON) as progress:
        archived = run_archive(
            Source(directory, state), destination, options, lambda: _session(master, settings), on_progress=progress
        )
    if output is Output.JSON:
        print_json(_document(archived))
    else:
        _print_text(archived)


def _session(master: str, settings: dict[str, str]) -> AbstractContextManager[Any]:
    """Spark's, which is loaded only when there is work for it."""
    from tidemark.archive.session import spark_session

    return spark_session(master, settings)


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
    if archived.left_out:
        left = sum(one.next - one.first for one in archived.left_out)
        typer.echo(f"left out {left:,} messages: the manifest's left_out names them")
    typer.echo(f"the archive has {manifest.rows:,} messages in {len(manifest.files):,} files ({manifest.size:,} bytes)")
