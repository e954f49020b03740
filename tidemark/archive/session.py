"""Spark session for one job over the log, stopped at the end of the job."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

_OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
}
_OF_SQL = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),  # batch passed to a task's Python worker
}


@contextlib.contextmanager
def spark_session(master: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Provide a session on *master* with Spark's settings *conf*.

    An active session of this process is used and not stopped.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    package = str(Path(__file__).resolve().parents[2])  # tasks import this package from any working directory
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("tidemark-archive").master(master)
    for name, value in {**_OPTIONS, **conf}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def own_settings(session: SparkSession) -> SparkSession:
    """Return a session on the same executors with the settings of these jobs, without the settings of other code."""
    own = session.newSession()
    shuffles = {
        "spark.sql.shuffle.partitions": str(session.sparkContext.defaultParallelism)
    }  # only counts are shuffled
    for name, value in {**_OF_SQL, **shuffles}.items():
        own.conf.set(name, value)
    return own
