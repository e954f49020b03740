"""A Spark cluster of one master and one worker on this machine, from the pip package."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark

from tests.fixed_ports import fixed_port

_HOST = "127.0.0.1"
_CLASS = "org.apache.spark.deploy"


@contextlib.contextmanager
def standalone_cluster(folder: Path, *, cores: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yield the master's address, and the worker's process, whose children are the executors."""
    port = fixed_port()
    address = f"spark://{_HOST}:{port}"
    master = ("master.Master", "--host", _HOST, "--port", str(port), "--webui-port", str(fixed_port()))
    worker = ("worker.Worker", "--host", _HOST, "--cores", str(cores), "--memory", "2g")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_running(folder / "master.log", *master))
        more = ("--webui-port", str(fixed_port()), "--work-dir", str(folder / "work"), address)
        yield address, stack.enter_context(_running(folder / "worker.log", *worker, *more))


@contextlib.contextmanager
def _running(log: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(home / "bin" / "spark-class"), f"{_CLASS}.{name}", *arguments]
    with log.open("wb") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process:
        try:
            yield process
        finally:
            process.terminate()
