"""scripts/install.py: the progress that it shows while pip works."""

from __future__ import annotations

import pytest

from scripts.install import install, progress
from scripts.lock import LOCK, requirements
from scripts.lock_for import part_of_lock

READ = """Ignoring colorama: markers 'sys_platform == "win32"' don't match your environment
Collecting anyio==4.16.0 (from -r requirements.txt (line 1))
Requirement already satisfied: click==8.5.1 in site-packages (from -r requirements.txt (line 2)) (8.5.1)
"""
BUILT = "Building wheels for collected packages: pyspark\n"
INSTALLED = "Installing collected packages: py4j, anyio, pyspark\n"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("", "downloading 0 of 5 packages"),
        (READ, "downloading 2 of 4 packages"),
        (READ + BUILT, "building pyspark"),
        (READ + BUILT + INSTALLED, "installing 1 of 3 packages"),
    ],
)
def test_progress_names_what_pip_does(output: str, shown: str) -> None:
    assert progress(output, entries=5, installed=1) == shown


def test_a_failed_installation_shows_pips_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert install("no version of it\n") != 0
    assert "no version of it" in capfd.readouterr().err


def test_all_and_dev_are_the_whole_lock() -> None:
    """`make sync` installs these, and `make demo` a part of them."""
    assert list(requirements(part_of_lock(["all", "dev"], set()))) == list(requirements(LOCK.read_text()))
