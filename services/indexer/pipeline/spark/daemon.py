"""Spark's Python daemon with all that a task needs loaded: workers are forked from it, warm, and share its pages."""

from __future__ import annotations

import gc

import pandas as pd  # noqa: F401 - what mapInArrow loads in each worker otherwise
import pyarrow  # noqa: F401
import pyspark.sql.conversion
import pyspark.sql.pandas.serializers
import pyspark.sql.pandas.types  # noqa: F401
from pyspark import daemon

from tidemark.index.warm_up import warm_up

from . import job  # noqa: F401 - brings everything an epoch needs

if __name__ == "__main__":
    warm_up()
    gc.collect()
    gc.freeze()  # what is there now is never looked at again, so its pages stay shared
    daemon.manager()
