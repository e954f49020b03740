"""Whether the other targets would tell: a loop that reads one byte too many does not come back."""

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
def test_reading_beyond_the_buffer_ends_the_process(at_end: bool, at: int) -> None:
    """One byte behind its end; and before its begin, farther than negative numbers lead that count from the end."""
    program = PROGRAM.format(at_end=at_end, at=at)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, ""), done.stderr
