"""`make spark-versions`: format("tidemark") on each older Spark that it supports, from PyPI.

The exit status is 1 if a version differs from docs/spark.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tidemark.local.local_stack import LocalStack

PACKAGES = {"4.0.5": "py4j==0.10.9.9", "4.1.4": "py4j==0.10.9.9", "4.2.1": "py4j==0.10.9.9"}
_STREAMS_SINCE = "4.2"
_PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-build-isolation")
_TIMEOUT_S = 300


def look_at(version: str, folder: Path, services: dict[str, str]) -> dict[str, str]:
    """Return the result of `smoke` for *version*, installed into *folder*, against running *services*."""
    packages = [f"pyspark=={version}", PACKAGES[version]]
    subprocess.run([sys.executable, *_PIP, "--target", str(folder), *packages], check=True)
    environment = os.environ | {"PYTHONPATH": f"{folder}:{Path.cwd()}", "SPARK_HOME": str(folder / "pyspark")}
    command = [sys.executable, "-m", "tests.spark_versions.smoke", json.dumps(services)]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_TIMEOUT_S, check=True
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def is_as_documented(found: dict[str, str]) -> bool:
    """Return True if batches work, and streams work or fail with one sentence."""
    refused = f"streaming requires Spark {_STREAMS_SINCE} or later, this is {found['version']}; batch queries work"
    stream = "works" if found["version"] >= _STREAMS_SINCE else refused
    batches, streams = {found["batch"], found["batch sink"]}, {found["stream"], found["stream sink"]}
    return (batches, streams) == ({"works"}, {stream})


def main() -> int:
    """Return the exit status."""
    status = 0
    with tempfile.TemporaryDirectory() as data, LocalStack(Path(data)) as stack:
        services = {"writers": stack.writer_address, "url": stack.query_url}
        for version in PACKAGES:
            with tempfile.TemporaryDirectory() as folder:
                found = look_at(version, Path(folder), services)
            good = found.pop("version") == version and is_as_documented(found | {"version": version})
            told = "; ".join(f"{what} {outcome}" for what, outcome in found.items())
            print(f"{version}: {told}{'' if good else '  ← not as documented'}")
            status |= not good
    return status


if __name__ == "__main__":
    sys.exit(main())
