"""Starting the Spark session of a run: what Spark's Python processes must find in the environment."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ..config import PipelineSettings
from ..plan import EpochPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_session(settings: PipelineSettings, plan: EpochPlan) -> SparkSession:
    """The session of *settings*; the caller stops it."""
    from . import job

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if settings.is_local:  # else executors must reach the driver, under the address that Spark finds or is told
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (job.python_path(), os.environ.get("PYTHONPATH"))))
    return job.make_session(settings, plan)
