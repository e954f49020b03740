"""`python -m services.indexer scan`: scan a stretch of a log on Spark, and leave what was seen in a folder.

For `tidemark store check --master`: takes no lock, and writes nothing into the store.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from tidemark.errors import StoreError
from tidemark.index.scan.log_range import RANGE_SIZE_BYTES, ScannedRanges, ranges_of
from tidemark.settings.door import SettingsRefusedError, read_settings

from ..config import PipelineSettings
from ..plan import make_plan
from . import job
from .session import start_session


class ScanSettings(PipelineSettings):
    """Which stretch, and where what was seen goes. Offsets physical."""

    model_config = SettingsConfigDict(cli_prog_name="python -m services.indexer scan")

    folder: Path = Field(description="for what was seen; executors must see it")
    start: int = Field(ge=0, description="a record's edge")
    end: int = Field(gt=0, description="exclusive; all below it is committed")


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 done, 1 failed, 2 bad settings."""
    try:
        settings = read_settings("scan", ScanSettings, sys.argv[1:] if arguments is None else arguments)
    except SettingsRefusedError as error:
        sys.stderr.writelines(f"{line}\n" for line in error.lines)
        return 2
    try:
        _scan(settings)
    except StoreError as error:
        sys.stderr.write(f"{type(error).__name__}: {error.message}\n")
        return 1
    return 0


def _scan(settings: ScanSettings) -> None:
    plan = make_plan(settings)
    log = plan.open_log()
    size = settings.scan_range_size_bytes or RANGE_SIZE_BYTES
    ranges = ranges_of(log, settings.start, settings.end, size_bytes=size)
    log.close()
    plan = replace(plan, scanned=ScannedRanges(settings.folder.absolute(), ranges))
    session = start_session(settings, plan)
    try:
        job.Drain(session, is_local=settings.is_local).scan(plan)
    finally:
        session.stop()
