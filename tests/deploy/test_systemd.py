"""The units of deploy/systemd, as systemd itself reads them: `make deploy-test`, on machines with systemd-analyze."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.deploy.test_systemd_units import FOLDER, UNITS

MOST_EXPOSED = 30  # of 100: tenths of the exposure level of `systemd-analyze security`


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return the units with another Python in place of that of /opt/tidemark, which this machine does not have."""
    for path in FOLDER.glob("tidemark*.*"):
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/tidemark/bin/python", sys.executable))
    return tmp_path


def test_systemd_verify_accepts_the_units(installed: Path) -> None:
    """There is no unknown directive, wrong value or missing unit."""
    units = [str(installed / name) for name in (*UNITS, "tidemark.target")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    about_ours = [line for line in done.stderr.splitlines() if "tidemark" in line]
    assert (done.returncode, about_ours) == (0, [])


@pytest.mark.parametrize("name", UNITS)
def test_the_systemd_exposure_level_is_low(installed: Path, name: str) -> None:
    """The measure is systemd's own."""
    done = subprocess.run(
        [
            "systemd-analyze",
            "security",
            "--offline=true",
            "--no-pager",
            f"--threshold={MOST_EXPOSED}",
            str(installed / name),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-300:] + done.stderr
