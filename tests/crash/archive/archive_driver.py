"""An archive run that kills itself with SIGKILL at a given step."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

from tidemark.archive.options import ArchiveOptions, ArchiveSource
from tidemark.archive.progress import StepProgress
from tidemark.archive.run import run_archive
from tidemark.archive.session import spark_session
from tidemark.store.storage import DiskStorage

_QUICK_START = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


def main() -> None:
    given = json.loads(sys.argv[1])
    step, at = given["kill_at"]
    if step == "rename":
        _kill_before_rename(at)

    def on_progress(progress: StepProgress) -> None:
        if progress.step == step and progress.total == 0:  # the step begins
            threading.Timer(at / 1000, _die).start()

    run_archive(
        ArchiveSource(Path(given["store"])),
        Path(given["folder"]),
        ArchiveOptions(all_records=True),
        lambda: spark_session("local[2]", _QUICK_START),
        on_progress=on_progress,
    )


def _kill_before_rename(number: int) -> None:
    """Kill at a rename: the manifest's is the first in an empty archive's folder, and the last of a run."""
    rename, count = DiskStorage.rename, itertools.count()

    def counted(storage: DiskStorage, source: Path, target: Path) -> None:
        if next(count) == number:
            _die()
        rename(storage, source, target)

    DiskStorage.rename = counted  # type: ignore[method-assign,assignment]


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


if __name__ == "__main__":
    main()
