"""The programs of docs/testing.md, and the fixture that they use."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    """Nothing but pytest finds the fixture: the package's entry point does."""
    blocks = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
