"""`tidemark[spark]` from the wheel: Spark finds the source by its name, with nothing else installed."""

from __future__ import annotations

import os

import pytest

from tests.integration.conftest import Served
from tests.integration.package.conftest import Installed

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

READ = """
import tidemark
from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = session.read.format("tidemark").options(url=URL, subscribe="orders").load().collect()
print(tidemark.__file__, *sorted(bytes(row.body).decode() for row in rows))
"""


def test_the_spark_wheel_contains_no_service(with_spark: Installed) -> None:
    """The next test reads only with dependencies of the extra."""
    for name in ("fastapi", "structlog", "services"):
        assert f"No module named '{name}'" in with_spark.run(f"import {name}").stderr


def test_spark_finds_the_source_by_its_name(with_spark: Installed, served: Served) -> None:
    """It needs no registration, in the driver and in its tasks."""
    served.put(b"one", b"two", b"three")
    java = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    python = {"PYSPARK_PYTHON": str(with_spark.python), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = with_spark.run(f"URL = {served.url!r}\n{READ}", **java, **python)
    package = with_spark.site_packages / "tidemark" / "__init__.py"
    assert done.stdout.split() == [str(package), "one", "three", "two"], done.stderr
