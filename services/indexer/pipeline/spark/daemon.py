"""Spark's Python daemon with a task's modules preloaded: workers are forked from it, warm, and share its pages."""

from __future__ import annotations

import gc

import pandas as pd  # noqa: F401 - otherwise mapInArrow loads it in each worker
import pyarrow  # noqa: F401
import pyspark.sql.conversion
import pyspark.sql.pandas.serializers
import pyspark.sql.pandas.types  # noqa: F401
from pyspark import daemon

from tidemark.index.warm_up import warm_up

from . import job  # noqa: F401 - imports everything that an epoch needs

if __name__ == "__main__":
    warm_up()
    gc.collect()
    gc.freeze()  # the collector never touches frozen objects, so their pages stay shared
    daemon.manager()
