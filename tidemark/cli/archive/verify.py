"""`tidemark archive verify`: compares an archive with its manifest and with the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.archive.progress import StepProgress
from tidemark.cli.archive.progress import QuietOption, shown_progress
from tidemark.cli.archive.spark_options import LOCAL, ConfOption, MasterOption, open_session, parse_conf
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.cli.terminal.output import Output, OutputOption, print_json

if TYPE_CHECKING:
    from tidemark.archive.against import Compared
    from tidemark.archive.manifest import ArchiveManifest
    from tidemark.archive.options import ArchiveSource
    from tidemark.archive.progress import Progress
    from tidemark.archive.verify import ArchiveFault, ArchiveVerification


def verify(
    archive: Annotated[Path, typer.Argument(metavar="OUT", help="The archive's folder.", exists=True, file_okay=False)],
    against: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Compare messages with this store.", exists=True, file_okay=False),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Directory of Tidemark's own files, if the store is an attached broker's."),
    ] = None,
    master: MasterOption = LOCAL,
    conf: ConfOption = None,
    quiet: QuietOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check every file of an archive against its manifest; with --against, also every message against the store.

    Without --against, Spark is not needed. Messages that the store has deleted since are counted and not compared. Exit
    status 1 if the archive is damaged or differs.
    """
    from tidemark.archive.options import ArchiveSource
    from tidemark.archive.verify import verify_archive

    settings = parse_conf(conf)
    compared = None
    with shown_progress(quiet=quiet or output is Output.JSON) as progress:
        verified = verify_archive(archive, on_progress=progress)
        if against is not None and not verified.findings:
            source = ArchiveSource(against, state)
            compared = _compare(archive, verified.manifest, source, master, settings, progress)
    findings = verified.findings + ([] if compared is None else compared.findings)
    if output is Output.JSON:
        print_json(_document(verified, compared, findings))
    else:
        _print_text(verified, compared, findings)
    raise typer.Exit(ExitStatus.FAILED if findings else ExitStatus.OK)


def _compare(
    archive: Path,
    manifest: ArchiveManifest,
    source: ArchiveSource,
    master: str,
    settings: dict[str, str],
    progress: Progress,
) -> Compared:
    from tidemark.archive.against import compare_with_store

    progress(StepProgress("starting Spark"))
    with open_session(master, settings) as session:
        return compare_with_store(session, archive, manifest, source, on_progress=progress)


def _document(
    verified: ArchiveVerification, compared: Compared | None, findings: list[ArchiveFault]
) -> dict[str, object]:
    manifest = verified.manifest
    return {
        "store_name": manifest.store.store_name,
        "physical_end": manifest.physical_end,
        "rows": verified.rows,
        "files": len(manifest.files),
        "compared_rows": None if compared is None else compared.rows,
        "gone_from_store": None if compared is None else compared.gone,
        "left_out": [one.model_dump() for one in manifest.left_out],
        "findings": [finding._asdict() for finding in findings],
    }


def _print_text(verified: ArchiveVerification, compared: Compared | None, findings: list[ArchiveFault]) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        place = finding.path or f"queue {finding.queue_id} of {finding.topic}"
        console.print(f"[red]{finding.reason}[/]", end=" ")
        console.print(f"{place}: {finding.text}", markup=False)
    if compared is not None:
        console.print(f"{compared.rows:,} messages compared with the store; {compared.gone:,} no longer exist there")
    outcome = f"{len(findings)} findings" if findings else "sound"
    console.print(f"{verified.rows:,} messages in {len(verified.manifest.files):,} files: [bold]{outcome}[/]")
