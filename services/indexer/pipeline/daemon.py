"""Spark's Python daemon with the compiled loops loaded: workers are forked from it, warm, and share its pages."""

from __future__ import annotations

import pyarrow  # noqa: F401 - loaded once, before the forks
from pyspark import daemon

from . import epoch  # noqa: F401 - brings numpy, numba and the kernels

if __name__ == "__main__":
    daemon.manager()
