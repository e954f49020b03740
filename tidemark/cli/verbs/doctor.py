"""The verb `doctor`: checks this machine for Tidemark's requirements."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.cli.terminal.output import Output, OutputOption, print_json
from tidemark.cli.terminal.service_addresses import QueryUrl, WriterAddress

EXAMPLE = "Example: tidemark doctor --data ./data"
_STYLES = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW, "fail": typer.colors.RED}


def doctor(
    ctx: typer.Context,
    data: Annotated[
        Path, typer.Option(help="Directory of the store, existing or planned.", envvar="TIDEMARK_STORE_ROOT")
    ] = Path("data"),
    writer: WriterAddress = None,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check this machine for Tidemark's requirements.

    Shows the addresses and credentials and their sources. Checks Java, Python, packages, ports, the members of the
    writer's group, disk, fdatasync, clock and memory, and changes nothing. Each line is ok, warn or fail, and names the
    next step unless it is ok. Exit status 1 if a check fails.
    """
    from tidemark.cli.health.connection_finding import connection_finding
    from tidemark.cli.health.doctor_checks import all_checks
    from tidemark.cli.health.finding import Level

    findings = []
    for finding in itertools.chain((connection_finding(ctx, writer, query),), all_checks(data, writer, query)):
        findings.append(finding)
        if output is not Output.JSON:
            level = typer.style(f"{finding.level.value:4}", fg=_STYLES[finding.level.value])
            typer.echo(f"{level}  {finding.name:10}  {finding.text}")
            if finding.next_step:
                typer.echo(f"{'':18}{finding.next_step}")
    failed = any(finding.level is Level.FAIL for finding in findings)
    if output is Output.JSON:
        print_json({"ok": not failed, "checks": [finding._asdict() for finding in findings]})
    raise typer.Exit(ExitStatus.FAILED if failed else ExitStatus.OK)
