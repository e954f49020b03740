"""Starts the Spark session of a run, with the environment that Spark's Python processes need."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ..config import PipelineSettings
from ..plan import EpochPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_session(settings: PipelineSettings, plan: EpochPlan) -> SparkSession:
    """Start the session of *settings*. The caller stops it."""
    from . import job

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if settings.is_local:  # on a cluster, executors reach the driver at the address that Spark finds or is given
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (job.python_path(), os.environ.get("PYTHONPATH"))))
    return job.make_session(settings, plan)
