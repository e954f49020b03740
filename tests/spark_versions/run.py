"""`make spark-versions`: format("tidemark") on each older Spark that it is written for, from PyPI.

Exit status 1 when one does not do what docs/spark.md says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = {"4.0.5": "py4j==0.10.9.9", "4.1.4": "py4j==0.10.9.9", "4.2.1": "py4j==0.10.9.9"}
_STREAMS_SINCE = "4.2"
_PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-build-isolation")
_TIMEOUT_S = 300


def look_at(version: str, folder: Path) -> dict[str, str]:
    """What `smoke` tells of *version*, installed into *folder*."""
    packages = [f"pyspark=={version}", PACKAGES[version]]
    subprocess.run([sys.executable, *_PIP, "--target", str(folder), *packages], check=True)
    environment = os.environ | {"PYTHONPATH": f"{folder}:{Path.cwd()}", "SPARK_HOME": str(folder / "pyspark")}
    command = [sys.executable, "-m", "tests.spark_versions.smoke"]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_TIMEOUT_S, check=True
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def is_as_documented(found: dict[str, str]) -> bool:
    """Batch reads everywhere; streams, or one sentence."""
    refused = f"streams need Spark {_STREAMS_SINCE} or later; this is {found['version']}. Batch reads work"
    stream = "works" if found["version"] >= _STREAMS_SINCE else refused
    return (found["batch"], found["stream"]) == ("works", stream)


def main() -> int:
    """Exit status."""
    status = 0
    for version in PACKAGES:
        with tempfile.TemporaryDirectory() as folder:
            found = look_at(version, Path(folder))
        good = found["version"] == version and is_as_documented(found)
        print(f"{version}: batch {found['batch']}; stream {found['stream']}{'' if good else '  ← not as documented'}")
        status |= not good
    return status


if __name__ == "__main__":
    sys.exit(main())
