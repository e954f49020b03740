"""Apache RocketMQ's jars from Maven Central and our client program, compiled: made once, kept in the user's cache.

Whoever lacks what it takes skips, and says what.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROCKETMQ_VERSION = "5.3.3"  # as java/pom.xml
_JAVA = Path(__file__).parent / "java"
_TOOLS = ("java", "javac", "mvn")


class Toolchain(NamedTuple):
    """Where everything lies."""

    jars: Path
    classes: Path

    def java(self, main_class: str, *arguments: str, options: tuple[str, ...]) -> list[str]:
        """The command that runs *main_class*."""
        return ["java", *options, "-cp", f"{self.classes}:{self.jars}/*", main_class, *arguments]


def require_toolchain() -> Toolchain:
    """The toolchain, made when it is missing; skips the test where it cannot be had."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: a real broker needs Debian's openjdk-17-jdk-headless and maven")
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidemark" / f"rocketmq-{ROCKETMQ_VERSION}"
    )
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        jars = _fetch_jars(cache)
        return Toolchain(jars, _compile(cache, jars))


def _fetch_jars(cache: Path) -> Path:
    pom = _JAVA / "pom.xml"
    jars = cache / f"jars-{_digest(pom)}"
    if jars.is_dir():
        return jars
    with tempfile.TemporaryDirectory(dir=cache) as work:
        copied = Path(work) / "jars"
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={copied}", "-DincludeScope=runtime"]
        done = subprocess.run(
            ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom), *goal],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = next(
                (line for line in done.stdout.splitlines() if "ERROR" in line), f"mvn gives {done.returncode}"
            )
            pytest.skip(f"Maven Central gives no RocketMQ {ROCKETMQ_VERSION}: {reason}")
        copied.rename(jars)
    return jars


def _compile(cache: Path, jars: Path) -> Path:
    source = _JAVA / "RocketClient.java"
    classes = cache / f"classes-{_digest(source)}"
    if classes.is_dir():
        return classes
    with tempfile.TemporaryDirectory(dir=cache) as work:
        compiled = Path(work) / "classes"
        command = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(compiled), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        compiled.rename(classes)
    return classes


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
