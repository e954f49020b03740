"""The minute's tour of README.md as a user works through it: services with Spark, then each block in order."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from tests.pages import DOCS, Terminal, blocks

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

README = DOCS.parent / "README.md"


@pytest.mark.timeout(900)  # Spark starts three times
@pytest.mark.parametrize("with_spark_jobs", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_the_tour_works_as_pasted(tmp_path: Path, with_spark_jobs: bool) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").write_text(f"PATH={Path(sys.executable).parent}{os.pathsep}$PATH\n")
    start, curl, command, store = blocks(README, "sh")
    client, spark = blocks(README, "python")
    activate, serve = start.splitlines()
    with Terminal(tmp_path).serving(serve.partition("#")[0]) as terminal:
        printed = terminal.shell(f"{activate}\n{curl}")
        assert printed.count('"body":"hello"') == 3, printed  # pulled, looked up, followed
        printed = terminal.shell(command)
        assert re.search(r"\bhello\b", printed) and "watermark" in printed, printed
        printed = terminal.python(client)
        assert {" hello A", " soon None", " all None", " or none None", " one row A", " another B"} <= {
            re.sub(r"^\d+ \d+", "", line) for line in printed.splitlines()
        }
        assert "queue_offset: int64" in printed
        check, backup, archive = store.splitlines()
        terminal.shell(f"{check}\n{backup}")
        if with_spark_jobs:
            printed = terminal.python(spark)
            assert re.search(r"\| +A\| +3\|", printed), printed
            terminal.shell(archive, timeout_s=600)
    assert (tmp_path / "backup").is_dir()
    if with_spark_jobs:
        assert ds.dataset(tmp_path / "archive" / "data" / "topic=orders", format="parquet").count_rows() == 7
