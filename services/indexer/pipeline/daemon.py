"""Spark's Python daemon with the compiled loops loaded: workers are forked from it, warm, and share its pages."""

from __future__ import annotations

import pyarrow  # noqa: F401 - loaded once, before the forks
from pyspark import daemon

from tidemark.index.warm import warm_up

from . import epoch  # noqa: F401 - brings everything an epoch needs

if __name__ == "__main__":
    warm_up()
    daemon.manager()
