"""The site that `make site` builds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import tidemark.client

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """The build fails for a renamed page or class of the reference; parameters are shown as a list."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "<li><strong>timeout_s</strong>: limit for each" in (tmp_path / "reference" / "client.html").read_text()


def test_the_reference_has_every_name_of_the_client() -> None:
    """A new public class must be added to the reference."""
    text = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"^::: tidemark\.client\.(\S+)", text, re.MULTILINE))
    assert {name for name in tidemark.client.__all__ if not name.isupper()} == listed
