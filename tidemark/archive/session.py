"""Spark session for one job over the log, stopped at the end of the job."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tidemark.archive.jvm_output import held_output
from tidemark.archive.spark_job import first_line
from tidemark.errors import UnavailableError

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

    An active session of this process is used and not stopped. The output of a new session's JVM is shown only if the
    body fails, as by `held_output`.

    Raises UnavailableError if Spark does not start.
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
    settings = SparkConf().setAppName("tidemark-archive").setMaster(master).setAll([*{**_OPTIONS, **conf}.items()])
    with held_output() as output:
        session = _start(settings, output)
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            session.stop()


def _start(settings: SparkConf, output: int) -> SparkSession:
    """Start a session. output: file descriptor for a new JVM; an earlier session's JVM is used again."""
    streams = {"stdout": output, "stderr": output}
    try:
        gateway = SparkContext._gateway or launch_gateway(settings, streams)  # type: ignore[no-untyped-call]
        return SparkSession(SparkContext(conf=settings, gateway=gateway))
    except (PySparkException, Py4JJavaError) as error:
        raise UnavailableError(f"Spark did not start: {first_line(error)}") from error


def own_settings(session: SparkSession) -> SparkSession:
    """Return a session on the same executors with the settings of these jobs, without the settings of other code."""
    own = session.newSession()
    shuffles = {
        "spark.sql.shuffle.partitions": str(session.sparkContext.defaultParallelism)
    }  # only counts are shuffled
    for name, value in {**_OF_SQL, **shuffles}.items():
        own.conf.set(name, value)
    return own
