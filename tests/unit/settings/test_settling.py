"""Memory that only the start needed is released, and everything still works."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import re
from pathlib import Path
import llvmlite.binding
from services.indexer.query.memory_limits import limit_memory
from tidemark.read.warm_up import warm_up
from tidemark.settings.settling import settle_memory

def file_kib():
    return int(re.search(r"RssFile:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

limit_memory()
warm_up()
before = file_kib()
settle_memory()
assert file_kib() < before, (before, file_kib())
warm_up()
"""


def test_a_settled_process_is_smaller_and_continues() -> None:
    """The compiler's code is out of memory, and its compiled loops still run."""
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=120)
