"""Fetches a product's jars from Maven Central and compiles the Java load programs, once, into the user's cache."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.cache import digest, locked_cache

_JAVA = Path(__file__).parent / "java"
_TOOLS = ("java", "javac", "mvn")


class ToolchainMissingError(Exception):
    """Error for a missing Java or Maven, or for jars that Maven Central does not provide."""


class Product(NamedTuple):
    """A product in Maven Central. Its pom.xml has a default version in the property `<name>.version`."""

    name: str
    title: str
    version: str

    @property
    def sources(self) -> Path:
        """The folder of pom.xml and the load programs."""
        return _JAVA / self.name


ROCKETMQ = Product("rocketmq", "RocketMQ", "5.3.3")
KAFKA = Product("kafka", "Kafka", "4.1.0")
SPARK_KAFKA = Product(
    "spark", "Spark's Kafka source", "4.2.0"
)  # only jars; the newest version, also used with Spark 4.3.0


# Maven Central has only the broker's own modules of these versions. The name server, the client and others are older.
_OTHER_MODULES = {("rocketmq", "5.5.1"): "5.5.0"}


class Toolchain(NamedTuple):
    """The paths of jars and compiled programs."""

    jars: Path
    classes: Path

    def java(self, main_class: str, *arguments: str, options: Sequence[str]) -> list[str]:
        """Return the command that runs *main_class*."""
        return ["java", *options, "-cp", f"{self.classes}:{self.jars}/*", main_class, *arguments]


def load_programs(product: Product) -> list[Path]:
    """Return the sources of the load programs for *product*."""
    return sorted([*product.sources.glob("*.java"), *(_JAVA / "shared").glob("*.java")])


def make_toolchain(product: Product, sources: Sequence[Path]) -> Toolchain:
    """Return the jars of *product* and *sources* compiled against them; make them if missing.

    Raises ToolchainMissingError.
    """
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise ToolchainMissingError(
            f"{', '.join(missing)} is missing: for {product.title}, install Debian's openjdk-17-jdk-headless and maven"
        )
    with locked_cache(f"{product.name}-{product.version}") as cache:
        jars = _jars(cache, product)
        return Toolchain(jars, _compile(cache, jars, sources))


def fetch_jars(product: Product) -> Path:
    """Return the folder of the product's jars; fetch them if missing. Raises ToolchainMissingError."""
    with locked_cache(f"{product.name}-{product.version}") as cache:
        return _jars(cache, product)


def _jars(cache: Path, product: Product) -> Path:
    pom = product.sources / "pom.xml"
    jars = cache / f"jars-{digest([pom])}"
    if jars.is_dir():
        return jars
    with tempfile.TemporaryDirectory(dir=cache) as work:
        copied = Path(work) / "jars"
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={copied}", "-DincludeScope=runtime"]
        done = subprocess.run(
            ["mvn", "-q", "-B", "-Dstyle.color=never", *_versions(product), "-f", str(pom), *goal],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = next(
                (line for line in done.stdout.splitlines() if "ERROR" in line), f"mvn gives {done.returncode}"
            )
            raise ToolchainMissingError(
                f"{product.title} {product.version} cannot be fetched from Maven Central: {reason}"
            )
        copied.rename(jars)
    return jars


def _versions(product: Product) -> list[str]:
    """Return Maven's options that set the version properties of pom.xml."""
    others = _OTHER_MODULES.get((product.name, product.version))
    chosen = [f"-D{product.name}.version={product.version}"]
    return chosen if others is None else [*chosen, f"-D{product.name}.others.version={others}"]


def _compile(cache: Path, jars: Path, sources: Sequence[Path]) -> Path:
    classes = cache / f"classes-{digest(sources)}"
    if classes.is_dir():
        return classes
    with tempfile.TemporaryDirectory(dir=cache) as work:
        compiled = Path(work) / "classes"
        command = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(compiled), *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        compiled.rename(classes)
    return classes
