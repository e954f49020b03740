"""The guard itself: a loop that reads one byte too many ends its process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import faulthandler
import numpy as np
from tests.fuzz.guarded import GuardedBuffer
from tidemark.format.kernels.integers import get_i4
buffer = GuardedBuffer(100).lend(bytes(8), at_end={at_end})
assert get_i4(buffer, 4) == 0 == get_i4(buffer, 0)
get_i4(buffer, {at})
print("nobody noticed")
"""


@pytest.mark.parametrize(("at_end", "at"), [(True, 5), (False, -9)])
def test_a_read_beyond_the_guarded_buffer_ends_the_process(at_end: bool, at: int) -> None:
    """The read is one byte past the end, or so far before the begin that negative indices do not reach it."""
    program = PROGRAM.format(at_end=at_end, at=at)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, ""), done.stderr
